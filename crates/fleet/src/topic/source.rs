//! The topic as a source of changes: a consumer of the group of all projections, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_core::{Error, Frontier, Result, Shard};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use super::create::Quiet;
use super::event::decode;
use super::windows::{Offer, Windows};
use super::{Kafka, require_fitting};
use crate::Fleet;
use crate::project::{ChangeSource, SourceBatch};

/// How long the thread waits for a message before it looks whether it should end.
const POLL: Duration = Duration::from_millis(100);

/// How long a message waits for room.
const WAIT_MAX: Duration = Duration::from_secs(5);

const SEEK_MAX: Duration = Duration::from_secs(2);

/// Reads the topic while it is kept.
///
/// Where to read is found by the marks of the hosts: nothing is kept in the group, so that a group that is reset loses nothing. What
/// the topic does not have any more, or does not bring, is read from the logs.
pub struct TopicSource {
    windows: Arc<Windows>,
    ends: Arc<AtomicBool>,
}

impl TopicSource {
    /// Starts to read a part of the topic of a fleet: the brokers divide it between all processes that project.
    pub async fn start(fleet: &Fleet, kafka: &Kafka) -> Result<Self> {
        Self::read(fleet, kafka, "projection", |consumer, _| consumer.subscribe(&[&kafka.topic])).await
    }

    /// Starts to read the whole topic.
    pub async fn start_whole(fleet: &Fleet, kafka: &Kafka) -> Result<Self> {
        let shards: Vec<Shard> = fleet.shared.topology().shards().collect();
        let mut partitions = TopicPartitionList::new();
        for shard in &shards {
            let partition = i32::from(shard.0);
            let added = partitions.add_partition_offset(&kafka.topic, partition, Offset::End);
            added.map_err(|error| refused(&error))?;
        }
        Self::read(fleet, kafka, "filter", |consumer, windows| {
            windows.open(shards.into_iter());
            consumer.assign(&partitions)
        })
        .await
    }

    async fn read(
        fleet: &Fleet,
        kafka: &Kafka,
        group: &str,
        begin: impl FnOnce(&BaseConsumer<Assignments>, &Windows) -> std::result::Result<(), KafkaError>,
    ) -> Result<Self> {
        let shards = fleet.shared.topology().shards().len();
        let settings = kafka.clone();
        fleet.run(async move { require_fitting(&settings, shards).await }).await?;
        let (windows, ends) = (Arc::new(Windows::default()), Arc::new(AtomicBool::new(false)));
        let group = format!("{}.{group}", kafka.topic);
        let settings = [
            ("group.id", group.as_str()),
            ("enable.auto.commit", "false"),
            // From the newest on: from the first of them it is known how far to go back.
            ("auto.offset.reset", "latest"),
            ("partition.assignment.strategy", "cooperative-sticky"),
            ("session.timeout.ms", "6000"),
            ("max.poll.interval.ms", "30000"),
            ("heartbeat.interval.ms", "2000"),
            ("queued.max.messages.kbytes", "16384"),
        ];
        let context = Assignments(Arc::clone(&windows));
        let consumer: BaseConsumer<Assignments> = kafka.connect_with(&settings, context)?;
        begin(&consumer, &windows).map_err(|error| refused(&error))?;
        let reader = Reader { consumer, windows: Arc::clone(&windows), ends: Arc::clone(&ends) };
        let thread = std::thread::Builder::new().name("topic".to_owned());
        let failed = |error| Error::Storage { detail: format!("no thread for the topic: {error}") };
        thread.spawn(move || reader.run()).map_err(failed)?;
        Ok(Self { windows, ends })
    }

    /// How many sources the brokers have given to this process.
    pub fn sources(&self) -> usize {
        self.windows.len()
    }
}

impl Drop for TopicSource {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

impl ChangeSource for TopicSource {
    async fn changes(&self, host: usize, after: &Frontier, limit: usize) -> Result<Vec<SourceBatch>> {
        Ok(self.windows.after(host, after, limit))
    }
}

fn refused(error: &KafkaError) -> Error {
    Error::InvalidStore { detail: format!("kafka.topic: {error}") }
}

/// Hears which partitions are this process's.
struct Assignments(Arc<Windows>);

impl ClientContext for Assignments {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        Quiet.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Quiet.error(error, reason);
    }
}

fn sources(partitions: &TopicPartitionList) -> impl Iterator<Item = Shard> {
    let number = |element: &TopicPartitionListElem<'_>| u16::try_from(element.partition()).ok();
    let numbers: Vec<u16> = partitions.elements().iter().filter_map(number).collect();
    numbers.into_iter().map(Shard)
}

impl ConsumerContext for Assignments {
    fn pre_rebalance(&self, _consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => self.0.open(sources(partitions)),
            Rebalance::Revoke(partitions) => self.0.close(sources(partitions)),
            Rebalance::Error(error) => tracing::debug!(%error, "the group of projections"),
        }
    }
}

/// Reads messages into windows.
struct Reader {
    consumer: BaseConsumer<Assignments>,
    windows: Arc<Windows>,
    ends: Arc<AtomicBool>,
}

impl Reader {
    fn run(&self) {
        while !self.ends.load(Ordering::Relaxed) {
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => self.read(&message),
                Some(Err(error)) => tracing::debug!(%error, "the topic"),
                None => {}
            }
        }
    }

    fn read(&self, message: &BorrowedMessage<'_>) {
        let Some((epoch, logged)) = message.payload().and_then(decode) else {
            // A gap, which is read from the log.
            tracing::warn!(
                partition = message.partition(),
                offset = message.offset(),
                "a message is no change that this version knows"
            );
            return;
        };
        if i32::from(logged.change.position.shard.0) != message.partition() {
            return;
        }
        let began = Instant::now();
        loop {
            match self.windows.offer(epoch, &logged) {
                Offer::Settled => return,
                Offer::Earlier(messages) if self.go_back(message, messages) => return,
                // Offered once more, it is taken in the end.
                Offer::Earlier(_) => {}
                Offer::Full if self.ends.load(Ordering::Relaxed) => return,
                Offer::Full if began.elapsed() > WAIT_MAX => {
                    // One source that stands still must not keep the others from being read. The log has what it needs.
                    self.windows.empty(logged.change.position.shard);
                    return;
                }
                Offer::Full => self.windows.wait_for_room(POLL),
            }
        }
    }

    /// Reads again from so many messages before one. Messages that came twice may be in between: then the next look goes further.
    fn go_back(&self, message: &BorrowedMessage<'_>, messages: u64) -> bool {
        let (topic, partition) = (message.topic(), message.partition());
        let Ok((oldest, _)) = self.consumer.fetch_watermarks(topic, partition, SEEK_MAX) else {
            return false;
        };
        let offset = message.offset().saturating_sub(messages as i64).max(oldest);
        offset < message.offset()
            && self.consumer.seek(topic, partition, Offset::Offset(offset), SEEK_MAX).is_ok()
    }
}
