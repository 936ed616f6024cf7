//! Spans of commands: one for a batch, named after what is in it, as OpenTelemetry names commands of Redis.
//!
//! A span costs more than a check, so which batches get one is decided first, here: without a span, a batch costs one
//! comparison while traces are off, and a random number while they are on.

use kinfolk_core::Store;
use tracing::Span;
use tracing::field::Empty;

use super::batch::Batch;
use super::command::Command;
use super::random;
use super::reply::Version;

/// Which batches get a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// Those whose random number is no greater; none if this is 0.
    number_max: u64,
}

impl Sampling {
    /// Samples this fraction of them, from 0 to 1.
    pub(crate) fn new(part: f64) -> Self {
        Self { number_max: (part * u64::MAX as f64) as u64 }
    }

    /// Whether the next batch gets one.
    pub(crate) fn chooses(self) -> bool {
        self.number_max > 0 && random::next() <= self.number_max
    }
}

/// The span of a batch. Its attributes have the names of OpenTelemetry's conventions for databases, and for Redis where
/// it has its own.
pub(super) fn span<S: Store>(batch: &Batch, input: &[u8], version: Version) -> Span {
    let name = name::<S>(batch, input);
    let span = tracing::info_span!(
        "command",
        otel.name = name,
        otel.kind = "server",
        db.system.name = "kinfolk",
        db.operation.name = name,
        db.operation.batch.size = Empty,
        db.response.status_code = Empty,
        "error.type" = Empty,
        network.protocol.name = "resp",
        network.protocol.version = %version.number(),
    );
    if batch.len() > 1 {
        span.record("db.operation.batch.size", batch.len());
    }
    span
}

/// Says in a span how its only command failed, if it did. Which reply of several belongs to which command is not known
/// here.
pub(super) fn finish(span: &Span, batch: &Batch, replied: &[u8]) {
    if span.is_disabled() || batch.len() != 1 {
        return;
    }
    let error = replied.strip_prefix(b"-").and_then(|error| error.split(|&byte| byte == b' ').next());
    if let Some(prefix) = error.and_then(|prefix| str::from_utf8(prefix).ok()) {
        span.record("db.response.status_code", prefix);
        span.record("error.type", prefix);
    }
}

/// The name of a batch. It has no text that a client chooses.
fn name<S: Store>(batch: &Batch, input: &[u8]) -> String {
    let mut names = (0..batch.len()).map(|number| {
        let found = batch.command(number, input).get(0).and_then(Command::<S>::find);
        found.map_or("unknown", |command| command.name)
    });
    let first = names.next().unwrap_or_default().to_ascii_uppercase();
    match (batch.len(), names.all(|name| name.eq_ignore_ascii_case(&first))) {
        (..=1, _) => first,
        (_, true) => format!("PIPELINE {first}"),
        (_, false) => "PIPELINE".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::ModelStore;

    use super::super::frame::FrameLimits;
    use super::*;

    fn name_of(lines: &str) -> String {
        let (mut batch, mut input) = (Batch::default(), lines.as_bytes().to_vec());
        batch.fill(&mut input, 0, 100, &FrameLimits::DEFAULT);
        name::<ModelStore>(&batch, &input)
    }

    #[test]
    fn a_batch_is_named_after_its_commands_and_nothing_else() {
        assert_eq!(name_of("sismember following:1 2\n"), "SISMEMBER");
        assert_eq!(name_of("SISMEMBER following:1 2\nsismember following:1 3\n"), "PIPELINE SISMEMBER");
        assert_eq!(name_of("SISMEMBER following:1 2\nPING\n"), "PIPELINE");
        assert_eq!(name_of("hunter2\n"), "UNKNOWN");
        assert_eq!(name_of("hunter2\nhunter3\n"), "PIPELINE UNKNOWN");
    }

    #[test]
    fn such_a_part_is_chosen() {
        let chosen = |part: f64| {
            let sampling = Sampling::new(part);
            (0..100_000).filter(|_| sampling.chooses()).count()
        };
        assert_eq!((chosen(0.0), chosen(1.0)), (0, 100_000));
        assert!((20_000..30_000).contains(&chosen(0.25)));
    }
}
