//! Creates the topic, or makes sure that the one that is there fits.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Error, Result};
use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;

use super::Kafka;
use crate::postgres::unavailable;

/// How long the brokers may take for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Not every broker knows a new topic at once.
const LOOKS_MAX: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A context that reports what a client of Kafka says about itself as details: an operator hears of Kafka by lag and readiness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "kafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "kafka");
    }
}

/// Refuses a topic that does not fit. Brokers that can't be reached prove nothing: a process starts without them.
pub(crate) async fn require_fitting(kafka: &Kafka, shards: usize) -> Result<()> {
    match require_topic(kafka, shards).await {
        Err(Error::Unavailable { what, .. }) => {
            tracing::warn!(what, "Kafka can't be reached");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Creates the topic unless it is there, with one partition for each shard.
pub(crate) async fn require_topic(kafka: &Kafka, shards: usize) -> Result<()> {
    let admin: Arc<AdminClient<Quiet>> = Arc::new(kafka.connect(&[])?);
    let found = created_or_found(&admin, kafka, shards).await;
    // Ending a client takes a while.
    drop(tokio::task::spawn_blocking(move || drop(admin)));
    let found = found?;
    if found == shards {
        return Ok(());
    }
    let topic = &kafka.topic;
    let detail = format!(
        "the topic {topic} has {found} partitions, and the fleet has {shards} shards; name another topic in kafka.topic"
    );
    Err(Error::InvalidStore { detail })
}

/// The number of partitions of the topic, which is created if need be.
async fn created_or_found(admin: &Arc<AdminClient<Quiet>>, kafka: &Kafka, shards: usize) -> Result<usize> {
    match partitions(admin, kafka).await? {
        0 if create(admin, kafka, shards).await? => Ok(shards),
        0 => known_partitions(admin, kafka).await,
        found => Ok(found),
    }
}

/// How many partitions a topic has that was created a moment ago.
async fn known_partitions(admin: &Arc<AdminClient<Quiet>>, kafka: &Kafka) -> Result<usize> {
    for _ in 0..LOOKS_MAX {
        match partitions(admin, kafka).await? {
            0 => tokio::time::sleep(BETWEEN_LOOKS).await,
            found => return Ok(found),
        }
    }
    Err(unavailable("Kafka", "it does not know its new topic yet"))
}

/// How many partitions the topic has; none if it is not there.
async fn partitions(admin: &Arc<AdminClient<Quiet>>, kafka: &Kafka) -> Result<usize> {
    let (admin, topic) = (Arc::clone(admin), kafka.topic.clone());
    let asked = tokio::task::spawn_blocking(move || {
        let metadata = admin.inner().fetch_metadata(Some(&topic), ANSWER_MAX)?;
        Ok(metadata.topics().first().map_or(0, |topic| topic.partitions().len()))
    });
    let answer: std::result::Result<usize, KafkaError> = asked.await.map_err(|_| Error::Closed)?;
    answer.map_err(|error| unavailable("Kafka", error))
}

/// Creates the topic. Returns whether it was not there.
async fn create(admin: &AdminClient<Quiet>, kafka: &Kafka, shards: usize) -> Result<bool> {
    let in_sync = kafka.replication.saturating_sub(1).clamp(1, 2).to_string();
    let topic = NewTopic::new(&kafka.topic, shards as i32, TopicReplication::Fixed(kafka.replication.into()))
        .set("cleanup.policy", "delete")
        .set("min.insync.replicas", &in_sync)
        .set("unclean.leader.election.enable", "false");
    let options = AdminOptions::new().request_timeout(Some(ANSWER_MAX)).operation_timeout(Some(ANSWER_MAX));
    let created = admin.create_topics([&topic], &options).await;
    match created.map_err(|error| unavailable("Kafka", error))?.pop() {
        Some(Ok(_)) => Ok(true),
        Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(false),
        Some(Err((
            _,
            code @ (RDKafkaErrorCode::InvalidReplicationFactor
            | RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::PolicyViolation),
        ))) => {
            let detail = format!(
                "Kafka refuses to create the topic {} with {shards} partitions on {} brokers each: {code}",
                kafka.topic, kafka.replication
            );
            Err(Error::InvalidStore { detail })
        }
        Some(Err((_, code))) => Err(unavailable("Kafka", code)),
        None => Err(unavailable("Kafka", "no answer about the topic")),
    }
}
