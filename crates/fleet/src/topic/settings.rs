//! Where the brokers are, and how to speak to them.

use std::fmt;
use std::path::PathBuf;

use kinfolk_core::{Error, Result};
use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfigAndContext;

use super::create::Quiet;

/// The brokers and the topic of a fleet.
#[derive(Clone)]
pub struct Kafka {
    /// The brokers to ask first, as `HOST:PORT` with commas between them.
    pub brokers: String,
    /// The name of the topic.
    pub topic: String,
    /// On how many brokers each partition is, when the topic is created.
    pub replication: u16,
    /// The file of the authorities whose certificates the brokers show, as PEM. With it, connections are encrypted.
    pub authorities: Option<PathBuf>,
    /// Who this process is to the brokers.
    pub sasl: Option<Sasl>,
}

/// A user of the brokers.
#[derive(Clone)]
pub struct Sasl {
    /// `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.
    pub mechanism: String,
    /// The name.
    pub username: String,
    /// The password.
    pub password: String,
}

/// Without the password.
impl fmt::Debug for Kafka {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { brokers, topic, .. } = self;
        out.debug_struct("Kafka").field("brokers", brokers).field("topic", topic).finish_non_exhaustive()
    }
}

impl Kafka {
    /// The brokers without encryption, and the usual topic on one of them.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: "kinfolk.changes".to_owned(),
            replication: 1,
            authorities: None,
            sasl: None,
        }
    }

    /// What every client is configured with.
    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        let protocol = match (&self.authorities, &self.sasl) {
            (None, None) => "plaintext",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), None) => "ssl",
            (Some(_), Some(_)) => "sasl_ssl",
        };
        config
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "kinfolk")
            .set("security.protocol", protocol)
            .set("allow.auto.create.topics", "false")
            // A topic that was made anew, and a new leader, are found within seconds.
            .set("topic.metadata.refresh.interval.ms", "3000")
            .set("reconnect.backoff.max.ms", "1000")
            // A broker that was stopped answers nothing, and its connections stay open.
            .set("socket.timeout.ms", "4000");
        if let Some(file) = &self.authorities {
            config.set("ssl.ca.location", file.to_string_lossy());
        }
        if let Some(Sasl { mechanism, username, password }) = &self.sasl {
            config.set("sasl.mechanism", mechanism);
            config.set("sasl.username", username).set("sasl.password", password);
        }
        config
    }

    /// A client of some kind.
    pub(crate) fn connect<T: FromClientConfigAndContext<Quiet>>(&self, more: &[(&str, &str)]) -> Result<T> {
        self.connect_with(more, Quiet)
    }

    /// As [`Kafka::connect`], with a context that hears what happens. It connects in the background: only settings can be refused.
    pub(crate) fn connect_with<C: rdkafka::ClientContext, T: FromClientConfigAndContext<C>>(
        &self,
        more: &[(&str, &str)],
        context: C,
    ) -> Result<T> {
        let mut config = self.client();
        for (name, value) in more {
            config.set(*name, *value);
        }
        let refused = |error| Error::InvalidStore { detail: format!("the settings of Kafka: {error}") };
        config.create_with_context(context).map_err(refused)
    }
}
