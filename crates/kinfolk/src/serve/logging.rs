//! Logs on standard error, and traces to a collector if one is configured. No secrets: requests are logged without
//! headers and bodies.

use std::io;

use anyhow::{Context, Result};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::UsageError;
use crate::settings::{Configuration, LogFormat};

/// Logging, from its start until [`Logging::end`].
pub(crate) struct Logging {
    #[cfg(feature = "otlp")]
    traces: Option<super::otlp::Traces>,
}

impl Logging {
    /// Starts logging for the whole process.
    pub(crate) fn start(configuration: &Configuration) -> Result<Self> {
        let level = &configuration.logging.level;
        let targets: Targets = level
            .parse()
            .map_err(|error| UsageError(format!("logging.level: invalid value '{level}': {error}")))?;
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let lines = match configuration.logging.format {
            LogFormat::Text => lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        let registry = tracing_subscriber::registry().with(lines.with_filter(targets));
        #[cfg(feature = "otlp")]
        {
            let traces = super::otlp::Traces::start(&configuration.tracing)?;
            let layer = traces.as_ref().map(super::otlp::Traces::layer);
            registry.with(layer).try_init().context("logging could not be started")?;
            Ok(Self { traces })
        }
        #[cfg(not(feature = "otlp"))]
        {
            if configuration.tracing.otlp_endpoint.is_some() {
                let message =
                    "this binary was built without the feature otlp; leave out tracing.otlp_endpoint";
                return Err(UsageError(message.to_owned()).into());
            }
            registry.try_init().context("logging could not be started")?;
            Ok(Self {})
        }
    }

    /// Sends the remaining traces.
    pub(crate) fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}
