//! The clock of a store in a folder: the system's. Tests offset it with a file, or make it panic.

use std::fs;
use std::path::PathBuf;

use kinfolk_core::{Clock, SystemClock, Timestamp};

/// The system's clock, with an optional file that has its offset in milliseconds, or `panic` and the name of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct WallClock {
    /// The file; only tests have one.
    pub(crate) file: Option<PathBuf>,
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now();
        let Some(file) = &self.file else { return now };
        // A missing file means no offset.
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(name) = text.trim().strip_prefix("panic ") {
            assert_ne!(std::thread::current().name(), Some(name), "the clock fails, as its file says");
        }
        let off_millis: i64 = text.trim().parse().unwrap_or_default();
        Timestamp::from_millis(now.millis().saturating_add_signed(off_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_offsets_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let clock = WallClock { file: Some(path.clone()) };
        let hours = || clock.now().millis().abs_diff(SystemClock.now().millis()) / 3_600_000;
        assert_eq!(hours(), 0);
        for text in ["36000000", "-36000000\n", "panic nobody"] {
            fs::write(&path, text).unwrap();
            assert!(hours() == if text.starts_with("panic") { 0 } else { 9 } || hours() == 10, "{text}");
        }
    }
}
