//! The room on disk that an import needs, looked at before it starts. What edges take depends on their ids and times, so it is an
//! estimate; a disk that is full in the middle is another matter, and leaves nothing behind either.

use std::path::Path;

use kinfolk::input::Expected;
use kinfolk_core::{Error, IdKind, Result};

/// How many bytes an import of such edges needs: in sorted runs, in three rows each, and in the index. Measured on graphs of some
/// million edges with ids all over their range, within a tenth.
pub fn of_edges(expected: Expected, ids: IdKind) -> u64 {
    let id_bytes = match ids {
        IdKind::Integer => 8,
        IdKind::Uuid => 16,
    };
    let since_bytes = if expected.with_since { 20 } else { 0 };
    expected.edges.saturating_mul(15 + 5 * id_bytes + since_bytes)
}

/// Requires that about so many bytes are free on the disk of a folder.
pub fn require(folder: &Path, needed: u64) -> Result<()> {
    // Where the system does not say, the work shows.
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if needed <= free {
        return Ok(());
    }
    let detail = format!(
        "the import needs about {} of disk by estimate, and {} are free; free some space and try again",
        size(needed),
        size(free)
    );
    Err(Error::NoRoom { detail })
}

fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 { format!("{mebibytes:.1} MiB") } else { format!("{:.1} GiB", mebibytes / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_told_with_its_size() {
        let folder = tempfile::tempdir().unwrap();
        require(folder.path(), 1).unwrap();
        let refused = require(folder.path(), 5 << 60).unwrap_err();
        assert_eq!(refused.code(), kinfolk_core::ErrorCode::StorageFull);
        assert!(
            refused.to_string().starts_with("the import needs about 5368709120.0 GiB of disk"),
            "{refused}"
        );
        assert_eq!(
            (size(0), size(1 << 19), size(3 << 29)),
            ("0.0 MiB".into(), "0.5 MiB".into(), "1.5 GiB".into())
        );
    }

    #[test]
    fn no_number_of_edges_is_too_large() {
        let expected = |edges| Expected { edges, with_since: true };
        assert_eq!(of_edges(expected(u64::MAX), IdKind::Uuid), u64::MAX);
        assert!(of_edges(expected(10), IdKind::Uuid) > of_edges(expected(10), IdKind::Integer));
        assert_eq!(of_edges(expected(0), IdKind::Integer), 0);
    }
}
