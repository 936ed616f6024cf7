//! Relaying the shards of one host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::{Error, Position, Sequence, Shard};
use rdkafka::error::KafkaError;
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;

use super::RelayCondition;
use super::ownership::Ownership;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{LogReader, LoggedChange, ShardSpan, relay_marks, rotated};
use crate::postgres::{Failure, Host, Query, unavailable};
use crate::topic::{Kafka, Quiet, encode, require_topic};

/// Changes that are read at once.
const PAGE: usize = 2_000;

/// Pages that wait for the brokers at most.
const PAGES_IN_FLIGHT: usize = 8;

/// How often the log is looked at, and how long changes gather.
const PAUSE: Duration = Duration::from_millis(5);

/// How often the locks are renewed.
const RENEW_EVERY: Duration = Duration::from_millis(500);

/// How often marks are written: with a relay that dies, what was sent since then comes again.
const MARK_EVERY: Duration = Duration::from_millis(200);

const AFTER_FAILURE: Duration = Duration::from_millis(300);

/// The catalog may know where a shard is, or which epoch it is, a moment later.
const AFTER_MOVE: Duration = Duration::from_millis(50);

/// A shard that could not be delivered waits so long: its partition may have no leader.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// A shard whose log has a gap is looked at so often.
const AFTER_GAP: Duration = Duration::from_secs(5);

/// A relay that stops waits so long for the brokers.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// The order of a partition is kept, and a message is acknowledged when enough brokers have it. One that can't be delivered in
/// time fails, and its shard begins again from its mark.
const PRODUCER: [(&str, &str); 7] = [
    ("acks", "all"),
    ("enable.idempotence", "true"),
    ("message.timeout.ms", "10000"),
    ("request.timeout.ms", "3000"),
    ("linger.ms", "5"),
    ("compression.type", "lz4"),
    ("queue.buffering.max.messages", "1000000"),
];

type Producer = FutureProducer<Quiet>;

pub(super) struct HostRelay {
    pub(super) shared: Arc<Shared>,
    pub(super) host: usize,
    pub(super) kafka: Kafka,
    pub(super) condition: RelayCondition,
}

impl HostRelay {
    pub(super) async fn run(self, mut stopping: watch::Receiver<bool>) {
        while !*stopping.borrow_and_update() {
            let Err(failure) = self.relay(&mut stopping).await else { continue };
            let is_moved = matches!(failure, Failure::Moved);
            tracing::debug!(host = self.host, ?failure, "relaying failed and is tried again");
            if !is_moved {
                let problem = match failure.into_error() {
                    Error::Unavailable { what, .. } => format!("{what} can't be reached"),
                    error => error.to_string(),
                };
                self.condition.set(self.host, Some(problem));
            }
            let pause = if is_moved { AFTER_MOVE } else { AFTER_FAILURE };
            _ = timeout(pause, stopping.changed()).await;
            // Whether or not that succeeds, the next attempt finds out what is wrong.
            _ = self.shared.reload_topology().await;
        }
    }

    /// Relays until it is to stop, or something fails.
    async fn relay(&self, stopping: &mut watch::Receiver<bool>) -> Result<(), Failure> {
        let topology = self.shared.topology();
        let host = &topology.hosts[self.host];
        self.keep_logs(&topology).await?;
        tokio::select! {
            found = require_topic(&self.kafka, topology.shards().len()) => found.map_err(Failure::Transient)?,
            _ = stopping.changed() => return Ok(()),
        }
        let ownership = Ownership::begin(host).await?;
        let mut session = Session {
            shared: &self.shared,
            topology: &topology,
            host,
            index: self.host,
            topic: &self.kafka.topic,
            condition: &self.condition,
            // One for each session: what an earlier one has not sent is forgotten with it.
            producer: self.kafka.connect(&PRODUCER).map_err(Failure::Final)?,
            ownership,
            shards: BTreeMap::new(),
            in_flight: VecDeque::new(),
        };
        self.condition.set(self.host, None);
        let outcome = session.run(stopping).await;
        let Session { producer, .. } = session;
        // Ending one may take a while.
        drop(tokio::task::spawn_blocking(move || drop(producer)));
        outcome
    }

    /// Makes the marks of shards that have none, so that from now on their logs are kept for the relay, whether or not there is a
    /// broker yet.
    async fn keep_logs(&self, topology: &Topology) -> Result<(), Failure> {
        let host = &topology.hosts[self.host];
        let spans = LogReader { shared: &self.shared, topology }.spans_on(self.host).await?;
        let shards: Vec<Shard> = spans.iter().map(|(shard, _)| *shard).collect();
        let marks = relay_marks(&self.shared, host, topology.epoch, &shards).await?;
        let missing = spans.iter().filter(|(shard, _)| marks.get(*shard).is_none());
        let missing: Vec<Position> = missing.map(|(shard, span)| span.trimmed().on(*shard)).collect();
        write_marks(&self.shared, topology, host, &missing).await
    }
}

/// How far a shard is.
#[derive(Clone, Copy)]
struct Progress {
    /// Everything up to here was handed to the producer.
    sent: Sequence,
    /// Everything up to here is acknowledged by the brokers.
    acknowledged: Sequence,
    /// The mark in the database.
    marked: Sequence,
    /// Rises when the shard begins again: what was sent before is not looked at any more.
    attempt: u32,
    /// When it may be sent again, after a message could not be delivered.
    not_before: Option<Instant>,
}

impl Progress {
    fn from(mark: Sequence) -> Self {
        Self { sent: mark, acknowledged: mark, marked: mark, attempt: 0, not_before: None }
    }

    /// Begins again from what is acknowledged, a little later.
    fn begin_again(&mut self) {
        self.sent = self.acknowledged;
        self.attempt = self.attempt.wrapping_add(1);
        self.not_before = Some(Instant::now() + AFTER_LOSS);
    }

    fn may_send(&self) -> bool {
        self.not_before.is_none_or(|moment| moment <= Instant::now())
    }
}

/// The changes of one shard in a page.
struct Sent {
    attempt: u32,
    last: Sequence,
    deliveries: Vec<DeliveryFuture>,
}

/// What has become of the changes of one shard in a page.
struct Outcome {
    attempt: u32,
    last: Sequence,
    error: Option<KafkaError>,
}

/// The locks of some shards, and what is on its way of them.
struct Session<'a> {
    shared: &'a Shared,
    topology: &'a Topology,
    host: &'a Host,
    index: usize,
    topic: &'a str,
    condition: &'a RelayCondition,
    producer: Producer,
    ownership: Ownership,
    shards: BTreeMap<Shard, Progress>,
    /// Pages in the order in which they were sent.
    in_flight: VecDeque<JoinHandle<BTreeMap<Shard, Outcome>>>,
}

impl Session<'_> {
    fn log(&self) -> LogReader<'_> {
        LogReader { shared: self.shared, topology: self.topology }
    }

    async fn run(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), Failure> {
        let mut progress = self.shared.watch_progress();
        let mut renewed: Option<Instant> = None;
        let mut marked = Instant::now();
        while !*stopping.borrow() {
            if !std::ptr::eq(Arc::as_ptr(&self.shared.topology()), self.topology) {
                return Err(Failure::Moved);
            }
            if renewed.is_none_or(|renewed| renewed.elapsed() >= RENEW_EVERY) {
                self.renew().await?;
                renewed = Some(Instant::now());
            }
            while self.in_flight.front().is_some_and(JoinHandle::is_finished) {
                self.acknowledge_next().await?;
            }
            if marked.elapsed() >= MARK_EVERY {
                self.mark().await?;
                marked = Instant::now();
            }
            if self.in_flight.len() >= PAGES_IN_FLIGHT {
                sleep(PAUSE).await;
                continue;
            }
            progress.mark_unchanged();
            let changes = self.next_changes().await?;
            let count = changes.len();
            if count > 0 {
                self.send(&changes)?;
            } else {
                _ = timeout(PAUSE, progress.changed()).await;
            }
            if count < PAGE {
                sleep(PAUSE).await;
            }
        }
        self.drain().await
    }

    /// Takes and frees shards. Fails if the map is old.
    async fn renew(&mut self) -> Result<(), Failure> {
        let all: BTreeSet<Shard> = self.topology.shards_on(self.index).collect();
        let owned = self.ownership.renew(&all).await?.clone();
        let spans: BTreeMap<Shard, ShardSpan> = self.log().spans_on(self.index).await?.into_iter().collect();
        self.shards.retain(|shard, _| owned.contains(shard));
        let new: Vec<Shard> = owned.into_iter().filter(|shard| !self.shards.contains_key(shard)).collect();
        if new.is_empty() {
            return Ok(());
        }
        // After the locks: the last owner may have moved its marks until then.
        let marks = relay_marks(self.shared, self.host, self.topology.epoch, &new).await?;
        for shard in new {
            // A mark of a new epoch is before all changes, and some of those may be gone.
            let trimmed = spans.get(&shard).copied().unwrap_or_default().trimmed();
            let mark = marks.get(shard).unwrap_or_default().max(trimmed);
            self.shards.insert(shard, Progress::from(mark));
        }
        Ok(())
    }

    /// What follows on what was sent, of some shards or all.
    async fn next_changes(&self) -> Result<Vec<LoggedChange>, Failure> {
        let ready = self.shards.iter().filter(|(_, progress)| progress.may_send());
        let after: Vec<Position> = ready.map(|(&shard, progress)| progress.sent.on(shard)).collect();
        if after.is_empty() {
            return Ok(Vec::new());
        }
        self.log().durable_changes(&rotated(&after), PAGE).await
    }

    /// Hands changes to the producer, those of each shard in order.
    fn send(&mut self, changes: &[LoggedChange]) -> Result<(), Failure> {
        let mut page: BTreeMap<Shard, Sent> = BTreeMap::new();
        for logged in changes {
            let Position { shard, sequence } = logged.change.position;
            let Some(progress) = self.shards.get_mut(&shard) else { continue };
            if sequence != progress.sent.next() {
                // Readers of the topic would wait for what is missing.
                progress.not_before = Some(Instant::now() + AFTER_GAP);
                self.condition.set(self.index, Some(gap(progress.sent.on(shard))));
                continue;
            }
            let event = encode(self.topology.epoch, logged);
            let key = event.follower.map(|follower| follower.to_string()).unwrap_or_default();
            let message = serde_json::to_vec(&event).expect("an event is always JSON");
            let record = FutureRecord::to(self.topic).partition(shard.0.into()).key(&key).payload(&message);
            let delivery = self.producer.send_result(record).map_err(|(error, _)| not_delivered(&error))?;
            progress.sent = sequence;
            let new = Sent { attempt: progress.attempt, last: sequence, deliveries: Vec::new() };
            let sent = page.entry(shard).or_insert(new);
            sent.last = sequence;
            sent.deliveries.push(delivery);
        }
        self.in_flight.push_back(tokio::spawn(async move {
            let mut outcomes = BTreeMap::new();
            for (shard, Sent { attempt, last, deliveries }) in page {
                let failed = |outcome| match outcome {
                    Ok(Ok(_)) => None,
                    Ok(Err((error, _))) => Some(error),
                    Err(_) => Some(KafkaError::Canceled),
                };
                let error = join_all(deliveries).await.into_iter().find_map(failed);
                outcomes.insert(shard, Outcome { attempt, last, error });
            }
            outcomes
        }));
        Ok(())
    }

    /// Waits for the first page on its way. A shard of it that was not delivered begins again from its mark; if none was, or the
    /// producer is broken, the session ends.
    async fn acknowledge_next(&mut self) -> Result<(), Failure> {
        let Some(page) = self.in_flight.front_mut() else { return Ok(()) };
        let page = page.await.map_err(|_| not_delivered(&KafkaError::Canceled))?;
        self.in_flight.pop_front();
        let mut failed = None;
        let mut is_any_delivered = false;
        for (shard, Outcome { attempt, last, error }) in page {
            // A shard that was freed and taken again may be further back.
            let current = |progress: &&mut Progress| progress.attempt == attempt && progress.sent >= last;
            let progress = self.shards.get_mut(&shard).filter(current);
            match (progress, error) {
                (Some(progress), Some(error)) => {
                    tracing::debug!(shard = shard.0, %error, "a shard was not delivered");
                    progress.begin_again();
                    failed = Some(error);
                }
                (Some(progress), None) => {
                    progress.acknowledged = progress.acknowledged.max(last);
                    progress.not_before = None;
                    is_any_delivered = true;
                }
                (None, _) => {}
            }
        }
        match failed {
            Some(error) if !is_any_delivered || self.producer.client().fatal_error().is_some() => {
                // What was delivered meanwhile need not come again.
                self.mark().await?;
                Err(not_delivered(&error))
            }
            failed => {
                self.condition.set(self.index, failed.map(|error| error.to_string()));
                Ok(())
            }
        }
    }

    /// Remembers what was acknowledged.
    async fn mark(&mut self) -> Result<(), Failure> {
        let moved = self.shards.iter().filter(|(_, progress)| progress.acknowledged > progress.marked);
        let moved: Vec<Position> = moved.map(|(&shard, progress)| progress.acknowledged.on(shard)).collect();
        write_marks(self.shared, self.topology, self.host, &moved).await?;
        for position in moved {
            if let Some(progress) = self.shards.get_mut(&position.shard) {
                progress.marked = position.sequence;
            }
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), Failure> {
        let delivered = async {
            while !self.in_flight.is_empty() {
                self.acknowledge_next().await?;
            }
            Ok(())
        };
        // What is still on its way then comes again.
        timeout(DRAIN_MAX, delivered).await.unwrap_or(Ok(()))?;
        self.mark().await
    }
}

async fn write_marks(
    shared: &Shared,
    topology: &Topology,
    host: &Host,
    marks: &[Position],
) -> Result<(), Failure> {
    if marks.is_empty() {
        return Ok(());
    }
    let epoch = topology.epoch.0 as i64;
    let shards: Vec<i16> = marks.iter().map(|mark| mark.shard.0 as i16).collect();
    let sequences: Vec<i64> = marks.iter().map(|mark| mark.sequence.0 as i64).collect();
    let parameters: [&(dyn ToSql + Sync); 3] = [&epoch, &shards, &sequences];
    host.execute(&shared.statements, Query::AdvanceRelayMarks, &parameters).await.map(drop)
}

fn not_delivered(error: &KafkaError) -> Failure {
    Failure::Transient(unavailable(&format!("Kafka: {error}; it"), error))
}

fn gap(last: Position) -> String {
    format!("the log has a gap after {last}; 'kinfolk verify --repair' fills it")
}
