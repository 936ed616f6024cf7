//! The consumers of `docs/events.md`, as processes that are killed and started again, on real topics: with repeats, with a shard that
//! was restored, created anew, or with events that are gone. Their views agree with a model.
//!
//! `cargo test` builds the consumer in Rust. The one in Python needs what `scripts/install-clients` installs; where that is missing, it
//! is left out, unless `KINFOLK_REQUIRE_CLIENTS` is set.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kinfolk_conformance::block_on;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::json;

use crate::kafka::{Topic, brokers};
use crate::processes::Random;

const SHARDS: usize = 4;
const USERS: u64 = 40;
const KILLS: u32 = 4;
const AT: &str = "2026-11-16T17:00:00.123Z";
const TIMEOUT: Duration = Duration::from_secs(60);

/// The log of a shard, and what it amounts to.
struct Log {
    epoch: u64,
    /// Keys and values of messages.
    events: Vec<(String, String)>,
    follows: BTreeSet<(u64, u64)>,
    relayed: usize,
}

impl Log {
    fn new(epoch: u64) -> Self {
        Self { epoch, events: Vec::new(), follows: BTreeSet::new(), relayed: 0 }
    }
}

/// A fleet that changes by a seed, and a relay that fails every now and then.
struct Source {
    brokers: String,
    topic: Topic,
    producer: BaseProducer,
    random: Random,
    logs: [Log; SHARDS],
}

impl Source {
    fn new(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            topic: Topic::create(brokers, SHARDS as i32),
            producer: producer(brokers),
            random: Random(20_261_116),
            logs: std::array::from_fn(|_| Log::new(1)),
        }
    }

    /// Writes a change to the log of a shard. The followers of a shard are its own; a followee can be anybody.
    fn change(&mut self, shard: usize) {
        let follower = self.random.below(USERS / SHARDS as u64) * SHARDS as u64 + shard as u64;
        let followee = self.random.below(USERS);
        let kind = ["follow", "follow", "follow", "block", "later"][self.random.below(5) as usize];
        let log = &mut self.logs[shard];
        let exists = kind == "follow" && !log.follows.insert((follower, followee));
        if exists {
            log.follows.remove(&(follower, followee));
        }
        let event = json!({
            "version": 1,
            "epoch": log.epoch,
            "shard": shard,
            "sequence": log.events.len() + 1,
            "type": if exists { "unfollow" } else { kind },
            "at": AT,
            "follower": follower.to_string(),
            "followee": followee.to_string(),
            "since": (!exists).then_some(AT),
            "previous": exists.then_some(AT),
            "added_later": 1,
        });
        log.events.push((follower.to_string(), event.to_string()));
    }

    /// Relays what is new in a shard. One event may not be delivered, though those behind it are: the relay resends from there. Or it
    /// has died, and its successor resends from an older mark.
    fn relay(&mut self, shard: usize) {
        let (mark, end) = (self.logs[shard].relayed, self.logs[shard].events.len());
        let failed = mark + self.random.below((end - mark) as u64) as usize;
        let far_behind = self.random.below(end as u64) as usize;
        let (lost, again) = match self.random.below(4) {
            0 => (end, end),
            1 => (end, failed),
            2 => (end, far_behind),
            _ => (failed, failed),
        };
        self.send(shard, mark..lost);
        self.send(shard, end.min(lost + 1)..end);
        self.send(shard, again..end);
        self.logs[shard].relayed = end;
    }

    fn send(&self, shard: usize, stretch: Range<usize>) {
        self.logs[shard].events[stretch].iter().for_each(|event| self.send_one(shard, event));
    }

    fn send_one(&self, shard: usize, (key, value): &(String, String)) {
        let record = BaseRecord::to(self.topic.name()).partition(shard as i32).key(key).payload(value);
        self.producer.send(record).map_err(|(error, _)| error).unwrap();
    }

    fn flush(&self) {
        self.producer.flush(TIMEOUT).unwrap();
    }

    /// Changes every shard, up to so many times, and relays the changes.
    fn advance(&mut self, changes_max: u64) {
        for shard in 0..SHARDS {
            for _ in 0..=self.random.below(changes_max) {
                self.change(shard);
            }
            self.relay(shard);
        }
        self.flush();
    }

    /// Deletes the topic and creates it anew. The relay goes on where it is.
    fn recreate_topic(&mut self) {
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", &self.brokers).create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(TIMEOUT));
        let name = self.topic.name();
        block_on(admin.delete_topics(&[name], &options)).unwrap().remove(0).unwrap();
        let new = NewTopic::new(name, SHARDS as i32, TopicReplication::Fixed(1));
        loop {
            match block_on(admin.create_topics([&new], &options)).unwrap().remove(0) {
                Ok(_) => break,
                // The old one is not quite gone.
                Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        // An idempotent producer numbers its messages, and the new topic does not know the numbers of the old one.
        self.producer = producer(&self.brokers);
    }

    fn events(&self) -> usize {
        self.logs.iter().map(|log| log.events.len()).sum()
    }

    /// How many followers users have, those with none left out.
    fn follower_counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (_, followee) in self.logs.iter().flat_map(|log| &log.follows) {
            *counts.entry(followee.to_string()).or_default() += 1;
        }
        counts
    }
}

fn producer(brokers: &str) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("enable.idempotence", "true");
    config.create().unwrap()
}

/// A consumer and its view.
struct View {
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
}

impl View {
    fn in_rust() -> Self {
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("examples/follower_counts");
        assert!(
            program.exists(),
            "{program:?} is missing: cargo test builds it, or --examples beside --test"
        );
        Self::new(program, &["--file"])
    }

    fn in_python() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let python = target.join("clients/venv/bin/python");
        let check = Command::new(&python).args(["-c", "import confluent_kafka"]).output();
        if !check.is_ok_and(|output| output.status.success()) {
            assert!(
                std::env::var_os("KINFOLK_REQUIRE_CLIENTS").is_none(),
                "confluent-kafka is missing; run scripts/install-clients"
            );
            println!("followers.py: NOT RUN, confluent-kafka is missing");
            return None;
        }
        let script = root.join("examples/events/followers.py");
        Some(Self::new(python, &[script.to_str().unwrap(), "--database"]))
    }

    fn new(program: PathBuf, arguments: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("view-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        arguments.push(folder.join("view").to_str().unwrap().to_owned());
        Self { program, arguments, folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(arguments);
        command
    }

    fn start(&self, source: &Source) -> Running {
        let arguments = ["--brokers", &source.brokers, "--topic", source.topic.name()];
        let mut process = self.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Running { process, output }
    }

    /// Reads the topic to its end.
    fn read_once(&self, source: &Source) -> Output {
        let arguments = ["--brokers", &source.brokers, "--topic", source.topic.name(), "--once"];
        self.command(&arguments).output().unwrap()
    }

    fn assert_agrees_with(&self, source: &Source) {
        let read = self.read_once(source);
        assert!(read.status.success(), "{:?}: {read:?}", self.program);
        let output = self.command(&["--show"]).output().unwrap();
        assert!(output.status.success(), "{:?}: {output:?}", self.program);
        let lines = String::from_utf8(output.stdout).unwrap();
        let shown: BTreeMap<String, u64> = lines
            .lines()
            .map(|line| {
                let (user, count) = line.split_once(' ').unwrap();
                (user.to_owned(), count.parse().unwrap())
            })
            .collect();
        assert_eq!(shown, source.follower_counts(), "{:?}", self.program);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// A consumer that runs until it is dropped: then it is killed.
struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Waits until it has taken so many events into its view.
    fn wait_for(&mut self, events: usize) {
        let mut taken = 0;
        while taken < events {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let count = line.strip_suffix(" events\n").and_then(|count| count.parse::<usize>().ok());
            taken += count.unwrap_or_else(|| panic!("it has ended, or said {line:?}"));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have failed, which the test finds out.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Runs a test for each consumer, on a topic of its own.
fn with_each_consumer(test: impl Fn(&View, &mut Source)) {
    let Some(brokers) = brokers() else { return };
    for view in [Some(View::in_rust()), View::in_python()].into_iter().flatten() {
        test(&view, &mut Source::new(&brokers));
    }
}

#[test]
fn kills_and_repeats_change_nothing_in_a_view() {
    with_each_consumer(|view, source| {
        for _ in 0..KILLS {
            let mut running = view.start(source);
            source.advance(10);
            running.wait_for(1);
            // It is killed while it takes these.
            source.advance(200);
        }
        view.assert_agrees_with(source);
    });
}

#[test]
fn a_restored_shard_starts_again_in_a_view() {
    with_each_consumer(|view, source| {
        source.advance(50);
        view.assert_agrees_with(source);
        source.change(2);
        let unsent = source.logs[2].events.pop().unwrap();
        source.logs[2] = Log::new(source.logs[2].epoch + 1);
        let mut running = view.start(source);
        source.advance(50);
        running.wait_for(1);
        drop(running);
        source.advance(50);
        // A relay that was stopped before the restore goes on for a moment.
        source.send_one(2, &unsent);
        source.flush();
        view.assert_agrees_with(source);
    });
}

#[test]
fn a_view_goes_on_with_a_topic_that_was_created_anew() {
    with_each_consumer(|view, source| {
        source.advance(50);
        view.assert_agrees_with(source);
        // Shorter than the old one, then longer: the same offsets have other events.
        for changes_max in [5, 300] {
            source.recreate_topic();
            source.advance(changes_max);
            view.assert_agrees_with(source);
        }
        // While it runs.
        let before = source.events();
        let mut running = view.start(source);
        source.advance(5);
        running.wait_for(source.events() - before);
        let before = source.events();
        source.recreate_topic();
        source.advance(5);
        running.wait_for(source.events() - before);
        drop(running);
        view.assert_agrees_with(source);
    });
}

#[test]
fn a_view_does_not_pass_over_events_that_are_gone() {
    with_each_consumer(|view, source| {
        source.change(1);
        source.change(1);
        source.send(1, 1..2);
        source.flush();
        let read = view.read_once(source);
        assert!(!read.status.success(), "{read:?}");
        let said = String::from_utf8(read.stderr).unwrap();
        assert!(said.contains("shard 1: event 1 is not in the topic"), "{said}");
        source.send(1, 0..2);
        source.flush();
        view.assert_agrees_with(source);
    });
}
