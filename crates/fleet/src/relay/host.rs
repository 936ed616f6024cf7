//! Relaying the shards of one host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::{Frontier, Position, Sequence, Shard};
use rdkafka::error::KafkaError;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::types::RDKafkaErrorCode;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;

use super::RelayCondition;
use super::ownership::Ownership;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{LogReader, LoggedChange, ShardSpan, relay_marks};
use crate::postgres::{Failure, Host, Query, unavailable};
use crate::topic::{Kafka, encode, require_topic};

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

/// A relay that stops waits so long for the brokers.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// The order of a partition is kept, and a message is acknowledged when enough brokers have it. One that can't be delivered in
/// time fails, and the relay begins again from its marks.
const PRODUCER: [(&str, &str); 7] = [
    ("acks", "all"),
    ("enable.idempotence", "true"),
    ("message.timeout.ms", "10000"),
    ("request.timeout.ms", "3000"),
    ("linger.ms", "5"),
    ("compression.type", "lz4"),
    ("queue.buffering.max.messages", "1000000"),
];

type Producer = FutureProducer<crate::topic::Quiet>;

pub(super) struct HostRelay {
    pub(super) shared: Arc<Shared>,
    pub(super) host: usize,
    pub(super) kafka: Kafka,
    pub(super) condition: RelayCondition,
}

impl HostRelay {
    pub(super) async fn run(self, mut stopping: watch::Receiver<bool>) {
        while !*stopping.borrow_and_update() {
            let failure = match self.relay(&mut stopping).await {
                Ok(()) => continue,
                Err(failure) => failure,
            };
            tracing::debug!(host = self.host, ?failure, "relaying failed and is tried again");
            let pause = if matches!(failure, Failure::Moved) { AFTER_MOVE } else { AFTER_FAILURE };
            _ = timeout(pause, stopping.changed()).await;
            // Whether or not that succeeds, the next attempt finds out what is wrong.
            _ = self.shared.reload_topology().await;
        }
    }

    /// Relays until it is to stop, or something fails.
    async fn relay(&self, stopping: &mut watch::Receiver<bool>) -> Result<(), Failure> {
        let topology = self.shared.topology();
        let found = require_topic(&self.kafka, topology.shards().len()).await;
        self.condition.set(found.as_ref().err().map(ToString::to_string));
        found.map_err(Failure::Transient)?;
        let host = &topology.hosts[self.host];
        let mut session = Session {
            shared: &self.shared,
            topology: &topology,
            host,
            index: self.host,
            topic: &self.kafka.topic,
            // One for each session: what an earlier one has not sent is forgotten with it.
            producer: self.kafka.connect(&PRODUCER).map_err(Failure::Final)?,
            ownership: Ownership::begin(host).await?,
            shards: BTreeMap::new(),
            in_flight: VecDeque::new(),
        };
        let outcome = session.run(stopping).await;
        let Session { producer, .. } = session;
        // Ending one may take a while.
        drop(tokio::task::spawn_blocking(move || drop(producer)));
        outcome
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
}

/// The locks of some shards, and what is on its way of them.
struct Session<'a> {
    shared: &'a Shared,
    topology: &'a Topology,
    host: &'a Host,
    index: usize,
    topic: &'a str,
    producer: Producer,
    ownership: Ownership,
    shards: BTreeMap<Shard, Progress>,
    /// Pages in the order in which they were sent, each with the last position of every shard in it.
    in_flight: VecDeque<JoinHandle<Result<Frontier, KafkaError>>>,
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
            if self.shared.topology().epoch != self.topology.epoch {
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
                self.send(changes).await?;
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
            let oldest = spans.get(&shard).copied().unwrap_or_default().trimmed();
            let from = marks.get(shard).unwrap_or(oldest);
            self.shards.insert(shard, Progress { sent: from, acknowledged: from, marked: from });
            if marks.get(shard).is_none() {
                // From now on the log is kept for the relay.
                self.write_marks(&[from.on(shard)]).await?;
            }
        }
        Ok(())
    }

    async fn next_changes(&self) -> Result<Vec<LoggedChange>, Failure> {
        let after: Vec<Position> =
            self.shards.iter().map(|(&shard, progress)| progress.sent.on(shard)).collect();
        if after.is_empty() {
            return Ok(Vec::new());
        }
        self.log().durable_changes(&after, PAGE).await
    }

    /// Hands changes to the producer.
    async fn send(&mut self, changes: Vec<LoggedChange>) -> Result<(), Failure> {
        let mut deliveries = Vec::with_capacity(changes.len());
        let mut last = Frontier::default();
        for logged in &changes {
            let event = encode(self.topology.epoch, logged);
            let key = event.follower.map(|follower| follower.to_string()).unwrap_or_default();
            let message = serde_json::to_vec(&event).expect("an event is always JSON");
            let position = logged.change.position;
            let mut record =
                FutureRecord::to(self.topic).partition(position.shard.0.into()).key(&key).payload(&message);
            deliveries.push(loop {
                match self.producer.send_result(record) {
                    Ok(delivery) => break delivery,
                    Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                        record = back;
                        sleep(PAUSE).await;
                    }
                    Err((error, _)) => return Err(not_delivered(&error)),
                }
            });
            last.advance(position);
        }
        for position in last.iter() {
            if let Some(progress) = self.shards.get_mut(&position.shard) {
                progress.sent = position.sequence;
            }
        }
        self.in_flight.push_back(tokio::spawn(async move {
            for outcome in join_all(deliveries).await {
                outcome.map_err(|_| KafkaError::Canceled)?.map_err(|(error, _)| error)?;
            }
            Ok(last)
        }));
        Ok(())
    }

    /// Waits for the first page on its way. One that was not delivered ends the session: the next one begins from the marks.
    async fn acknowledge_next(&mut self) -> Result<(), Failure> {
        let Some(page) = self.in_flight.front_mut() else { return Ok(()) };
        let page = page.await.unwrap_or(Err(KafkaError::Canceled));
        self.in_flight.pop_front();
        for position in page.map_err(|error| not_delivered(&error))?.iter() {
            // A shard that was freed and taken again may be further back.
            if let Some(progress) = self.shards.get_mut(&position.shard)
                && progress.sent >= position.sequence
            {
                progress.acknowledged = progress.acknowledged.max(position.sequence);
            }
        }
        Ok(())
    }

    /// Remembers what was acknowledged.
    async fn mark(&mut self) -> Result<(), Failure> {
        let moved: Vec<Position> = self
            .shards
            .iter()
            .filter(|(_, progress)| progress.acknowledged > progress.marked)
            .map(|(&shard, progress)| progress.acknowledged.on(shard))
            .collect();
        if !moved.is_empty() {
            self.write_marks(&moved).await?;
        }
        for position in moved {
            if let Some(progress) = self.shards.get_mut(&position.shard) {
                progress.marked = position.sequence;
            }
        }
        Ok(())
    }

    async fn write_marks(&self, marks: &[Position]) -> Result<(), Failure> {
        let epoch = self.topology.epoch.0 as i64;
        let shards: Vec<i16> = marks.iter().map(|mark| mark.shard.0 as i16).collect();
        let sequences: Vec<i64> = marks.iter().map(|mark| mark.sequence.0 as i64).collect();
        let parameters: [&(dyn ToSql + Sync); 3] = [&epoch, &shards, &sequences];
        self.host.execute(&self.shared.statements, Query::AdvanceRelayMarks, &parameters).await?;
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

fn not_delivered(error: &KafkaError) -> Failure {
    Failure::Transient(unavailable("Kafka", error))
}
