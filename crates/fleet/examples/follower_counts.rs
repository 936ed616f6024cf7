//! Keeps the number of followers of every user in a file, from the topic of a fleet (`docs/events.md`).
//!
//! ```sh
//! follower_counts --brokers 127.0.0.1:9092 --file followers.json
//! follower_counts --file followers.json --show 2
//! ```
//!
//! Kill and restart it at any time: counts and positions are replaced together, so that each event counts once. The whole view is
//! in memory, and written with each batch. Keep a larger one in a database, with its positions in the same transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kinfolk_api::{Event, Id};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::metadata::MetadataTopic;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde::{Deserialize, Serialize};

const USAGE: &str = "usage: follower_counts --file FILE [--brokers ADDRESSES] [--topic NAME] [--config KEY=VALUE]... \
                     [--once | --show [USER]...]";
const BATCH_MESSAGES: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How far the view has come in a shard: the last event that it contains, and the offset of a known event.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Position {
    epoch: u64,
    sequence: u64,
    offset: i64,
}

/// An event, and where the topic has it. The partition is the shard.
struct Received {
    shard: i32,
    offset: i64,
    event: Event,
}

/// Shards whose next event has not come yet, with the epoch and the sequence after which it is missing.
type Missing = BTreeMap<i32, (u64, u64)>;

#[derive(Default, Serialize, Deserialize)]
struct View {
    positions: BTreeMap<i32, Position>,
    /// Counts are kept for each shard of the followers, so that one shard can be cleared alone.
    followers: BTreeMap<i32, BTreeMap<Id, i64>>,
}

impl View {
    fn load(file: &Path) -> Result<Self> {
        match fs::read(file) {
            Ok(json) => Ok(serde_json::from_slice(&json)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the file: whenever the process or the machine stops, the old view is there or the new one.
    fn save(&self, file: &Path) -> Result<()> {
        let beside = file.with_extension("new");
        let mut new = File::create(&beside)?;
        new.write_all(&serde_json::to_vec(self)?)?;
        new.sync_all()?;
        fs::rename(&beside, file)?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?)
    }

    /// Takes each event that is the next of its shard. Returns how many, and which shards still miss their next.
    fn take(&mut self, batch: &[Received]) -> (u64, Missing) {
        let (mut taken, mut missing) = (0, Missing::new());
        for Received { shard, offset, event } in batch {
            let position = self.positions.entry(*shard).or_default();
            if event.epoch < position.epoch {
                continue;
            }
            if event.epoch > position.epoch {
                // The fleet was restored: the shard starts again.
                self.followers.remove(shard);
                (position.epoch, position.sequence) = (event.epoch, 0);
            }
            if event.sequence > position.sequence + 1 {
                // Some are missing, and come again. The offset stays before them.
                missing.insert(*shard, (position.epoch, position.sequence));
                continue;
            }
            if event.sequence == position.sequence + 1 {
                apply(self.followers.entry(*shard).or_default(), event);
                missing.remove(shard);
                position.sequence += 1;
                taken += 1;
            }
            position.offset = *offset;
        }
        (taken, missing)
    }

    fn show(&self, users: &[String]) -> Result<()> {
        let mut counts: BTreeMap<Id, i64> = BTreeMap::new();
        for (followee, count) in self.followers.values().flatten() {
            *counts.entry(*followee).or_default() += count;
        }
        for user in users {
            let id: Id = user.parse()?;
            println!("{user} {}", counts.get(&id).unwrap_or(&0));
        }
        if users.is_empty() {
            counts
                .iter()
                .filter(|(_, count)| **count > 0)
                .for_each(|(user, count)| println!("{user} {count}"));
        }
        Ok(())
    }
}

fn apply(followers: &mut BTreeMap<Id, i64>, event: &Event) {
    match (&*event.r#type, event.followee) {
        ("follow" | "unfollow", Some(followee)) => {
            let change = i64::from(event.since.is_some()) - i64::from(event.previous.is_some());
            *followers.entry(followee).or_default() += change;
        }
        ("imported", _) => {
            eprintln!("shard {}: a change was lost: build the view again from an export", event.shard);
        }
        _ => {}
    }
}

/// Assigns every partition from its position. Returns the ends of those that have messages.
fn start(consumer: &BaseConsumer, topic: &str, view: &View) -> Result<BTreeMap<i32, i64>> {
    let metadata = consumer.fetch_metadata(Some(topic), TIMEOUT)?;
    let (mut assignment, mut ends) = (TopicPartitionList::new(), BTreeMap::new());
    for partition in metadata.topics().iter().flat_map(MetadataTopic::partitions) {
        let shard = partition.id();
        let (low, high) = consumer.fetch_watermarks(topic, shard, TIMEOUT)?;
        // The offset is a hint: the topic may have been created anew since.
        let hint = view.positions.get(&shard).map(|position| position.offset);
        let offset = hint.filter(|offset| (low..high).contains(offset)).unwrap_or(low);
        assignment.add_partition_offset(topic, shard, Offset::Offset(offset))?;
        if low < high {
            ends.insert(shard, high);
        }
    }
    if assignment.count() == 0 {
        return Err(format!("there is no topic {topic}").into());
    }
    consumer.assign(&assignment)?;
    Ok(ends)
}

/// Waits up to a second for messages, and returns all that are there.
fn receive(consumer: &BaseConsumer) -> Result<Vec<Received>> {
    let (mut batch, mut wait) = (Vec::new(), Duration::from_secs(1));
    while batch.len() < BATCH_MESSAGES {
        match consumer.poll(wait) {
            Some(Ok(message)) => {
                let event: Event = serde_json::from_slice(message.payload().unwrap_or_default())?;
                if event.version > Event::VERSION {
                    return Err(format!("an event has version {}: update this program", event.version).into());
                }
                batch.push(Received { shard: message.partition(), offset: message.offset(), event });
                wait = Duration::ZERO;
            }
            Some(Err(error @ KafkaError::MessageConsumptionFatal(_))) => return Err(error.into()),
            Some(Err(error)) => eprintln!("Kafka: {error}"),
            None => break,
        }
    }
    Ok(batch)
}

fn follow(consumer: &BaseConsumer, view: &mut View, options: &Options) -> Result<()> {
    let mut ends = start(consumer, &options.topic, view)?;
    let (mut searched, mut is_complete) = (Missing::new(), true);
    while !(options.once && ends.is_empty()) {
        let batch = receive(consumer)?;
        let (taken, missing) = view.take(&batch);
        if !batch.is_empty() {
            view.save(&options.file)?;
        }
        if taken > 0 {
            println!("{taken} events");
        }
        // In a topic that was created anew, the missing event may be earlier: search it once from the beginning.
        let mut again = BTreeSet::new();
        for (&shard, &after) in &missing {
            if searched.insert(shard, after) != Some(after) {
                consumer.seek(&options.topic, shard, Offset::Beginning, TIMEOUT)?;
                again.insert(shard);
            }
        }
        for Received { shard, offset, .. } in &batch {
            let is_end = ends.get(shard).is_some_and(|&end| offset + 1 >= end);
            if is_end && !again.contains(shard) {
                ends.remove(shard);
                if let Some((_, sequence)) = missing.get(shard) {
                    eprintln!("shard {shard}: event {} is not in the topic", sequence + 1);
                    is_complete = false;
                }
            }
        }
    }
    if is_complete { Ok(()) } else { Err("the view is not complete".into()) }
}

struct Options {
    brokers: String,
    topic: String,
    file: PathBuf,
    config: Vec<(String, String)>,
    once: bool,
    show: Option<Vec<String>>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            brokers: "127.0.0.1:9092".into(),
            topic: "kinfolk.changes".into(),
            file: PathBuf::new(),
            config: Vec::new(),
            once: false,
            show: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(USAGE);
            match argument.as_str() {
                "--brokers" => options.brokers = value()?,
                "--topic" => options.topic = value()?,
                "--file" => options.file = value()?.into(),
                "--config" => {
                    let setting = value()?;
                    let (key, value) = setting.split_once('=').ok_or(USAGE)?;
                    options.config.push((key.into(), value.into()));
                }
                "--once" => options.once = true,
                "--show" => options.show = Some(arguments.by_ref().collect()),
                _ => return Err(USAGE.into()),
            }
        }
        if options.file.as_os_str().is_empty() { Err(USAGE.into()) } else { Ok(options) }
    }
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    if let Some(users) = &options.show {
        return View::load(&options.file)?.show(users);
    }
    let lock = File::create(options.file.with_extension("lock"))?;
    lock.try_lock().map_err(|error| format!("another process keeps this view: {error}"))?;
    let mut view = View::load(&options.file)?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &options.brokers).set("auto.offset.reset", "earliest");
    // Positions are in the view: nothing is committed to the group.
    config.set("group.id", "kinfolk-followers").set("enable.auto.commit", "false");
    for (key, value) in &options.config {
        config.set(key, value);
    }
    let consumer: BaseConsumer = config.create()?;
    follow(&consumer, &mut view, &options)
}
