//! Work in the background that needs space on a disk which may be full: it is tried again when there is more than was not enough.
//!
//! What is left of each try takes space until the next start, so trying all the time would take what others free.

use std::path::Path;
use std::time::{Duration, Instant};

use kinfolk_core::{Error, Result};

/// It is tried again after this time in any case: it may not have been bytes that were missing.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// So many bytes more make a difference.
const STEP_BYTES: u64 = 1 << 20;

/// Whether there may be room for some work.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace {
    lacking: Option<Lacking>,
}

/// What was not enough, and when.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    available: u64,
    tried: Instant,
}

impl FreeSpace {
    /// Does the work, unless the disk was too full for it and has hardly more space now.
    pub(crate) fn work(&mut self, folder: &Path, work: impl FnOnce() -> Result<()>) -> Option<Result<()>> {
        self.work_with(available_bytes(folder), Instant::now(), work)
    }

    fn work_with(
        &mut self,
        available: u64,
        now: Instant,
        work: impl FnOnce() -> Result<()>,
    ) -> Option<Result<()>> {
        if let Some(lacking) = self.lacking {
            let is_more = available > lacking.available + lacking.available / 4 + STEP_BYTES;
            if !is_more && now.duration_since(lacking.tried) < AGAIN_AFTER {
                return None;
            }
        }
        let done = work();
        let is_full = matches!(done, Err(Error::StorageFull { .. }));
        self.lacking = is_full.then_some(Lacking { available, tried: now });
        Some(done)
    }
}

/// How many bytes a disk has left; none where that is not known.
pub(crate) fn available_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_enough_is_not_tried_again() {
        const MIB: u64 = 1 << 20;
        let (mut room, start) = (FreeSpace::default(), Instant::now());
        let full = || Err(Error::StorageFull { detail: String::new() });
        let mut tried = |available, seconds, outcome: Result<()>| {
            room.work_with(available, start + Duration::from_secs(seconds), || outcome).is_some()
        };
        assert!(tried(100 * MIB, 0, full()));
        assert!(!tried(0, 1, Ok(())));
        assert!(!tried(120 * MIB, 59, Ok(())));
        assert!(tried(127 * MIB, 59, full()));
        assert!(!tried(127 * MIB, 118, Ok(())));
        assert!(tried(0, 119, full()), "in any case");
        assert!(tried(2 * MIB, 120, Ok(())));
        assert!(tried(0, 121, Err(Error::Closed)), "it was not full");
        assert!(tried(0, 122, Ok(())));
    }

    #[test]
    fn this_disk_has_some_space() {
        assert!(available_bytes(&std::env::temp_dir()) > 0);
        assert_eq!(available_bytes(Path::new("/nowhere/at/all")), 0);
    }
}
