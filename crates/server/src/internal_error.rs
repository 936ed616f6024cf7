//! Internal errors, as both protocols treat them: clients learn that the server failed, the log why. Errors that clients can
//! do something about are shown as they are.

use std::fmt;
use std::time::{Duration, Instant};

use kinfolk_core::Error;
use parking_lot::Mutex;

/// A full or failed disk refuses every write; logging that this often is enough.
const STATES_INTERVAL: Duration = Duration::from_secs(1);

/// What a client may read of an error. The details of an internal error name files of this machine.
pub(crate) struct Shown<'a>(pub &'a Error);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::StorageFull { .. } => {
                out.write_str("the disk is full, nothing was written: free some space and try again")
            }
            Error::ReadOnly { .. } => out.write_str(
                "writes are refused since the storage failed; reads go on: check the disk, then restart",
            ),
            Error::Unavailable { .. } => {
                out.write_str("a part of the storage can't be reached, nothing was changed; try again")
            }
            Error::Corrupt { .. } | Error::InvalidStore { .. } | Error::Storage { .. } => {
                out.write_str("the server failed; its log has the details")
            }
            other => write!(out, "{other}"),
        }
    }
}

/// Logs an internal error with all its details. Other errors concern the client only.
pub(crate) fn log(error: &Error, request: &dyn fmt::Display) {
    static STATE_LOGGED: Mutex<Option<Instant>> = Mutex::new(None);
    log_at(Instant::now(), &STATE_LOGGED, error, request);
}

/// As [`log`]; `state_logged` is when a state of the storage was logged last.
fn log_at(now: Instant, state_logged: &Mutex<Option<Instant>>, error: &Error, request: &dyn fmt::Display) {
    match error {
        Error::StorageFull { .. } | Error::ReadOnly { .. } | Error::Unavailable { .. } | Error::TimedOut => {
            let mut logged = state_logged.lock();
            if logged.is_some_and(|at| now.duration_since(at) < STATES_INTERVAL) {
                return;
            }
            *logged = Some(now);
        }
        Error::Corrupt { .. } | Error::InvalidStore { .. } | Error::Storage { .. } => {}
        _ => return,
    }
    tracing::error!(%request, %error, "a request failed");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// Keeps the lines that are logged: their level and their field `error`.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut error = ErrorField::default();
            event.record(&mut error);
            self.0.lock().push((*event.metadata().level(), error.0));
        }
    }

    #[derive(Default)]
    struct ErrorField(String);

    impl Visit for ErrorField {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "error" {
                self.0 = format!("{value:?}");
            }
        }
    }

    #[test]
    fn storage_that_can_not_be_reached_is_logged_once_an_interval() {
        let lines = Lines::default();
        let (state_logged, start) = (Mutex::new(None), Instant::now());
        let unavailable = Error::Unavailable { what: "shard 3".to_owned(), retry_after: Duration::ZERO };
        tracing::subscriber::with_default(lines.clone(), || {
            let log_after = |passed| log_at(start + passed, &state_logged, &unavailable, &"a request");
            log_after(Duration::ZERO);
            log_after(STATES_INTERVAL / 2);
            let line = (Level::ERROR, unavailable.to_string());
            assert!(line.1.contains("shard 3"));
            assert_eq!(lines.0.lock().len(), 1);
            log_after(STATES_INTERVAL);
            assert_eq!(*lines.0.lock(), [line.clone(), line]);
        });
    }

    #[test]
    fn details_stay_inside() {
        let secret = || "/var/lib/secret".to_owned();
        for error in [
            Error::StorageFull { detail: secret() },
            Error::ReadOnly { reason: secret() },
            Error::Corrupt { detail: secret() },
            Error::InvalidStore { detail: secret() },
            Error::Storage { detail: secret() },
            Error::Unavailable { what: secret(), retry_after: Duration::ZERO },
        ] {
            assert!(error.to_string().contains("secret"));
            let shown = Shown(&error).to_string();
            assert!(!shown.contains("secret") && !shown.is_empty(), "{shown}");
            // Whatever is a failure of the server is among these.
            assert!(error.code().http_status() >= 500);
        }
        // An error that a client can do something about is shown as it is: here, wait for work that goes on.
        let busy = Error::InUse { detail: "suggestions are being computed already".to_owned() };
        for error in [Error::SelfFollow, busy] {
            assert_eq!(Shown(&error).to_string(), error.to_string());
            assert!(error.code().http_status() < 500);
        }
    }
}
