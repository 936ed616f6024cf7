//! Checks before an import that the disk has enough free space, by an estimate. An import that fills the disk anyway
//! fails and leaves nothing behind.

use std::path::Path;

use kinfolk::input::Expected;
use kinfolk_core::{Error, IdKind, Result};

/// Estimates the bytes that an import of these edges needs: sorted runs, three rows per edge, and the index. Within a tenth
/// of measurements on graphs of some million edges with ids over the whole range.
pub(crate) fn of_edges(expected: Expected, ids: IdKind) -> u64 {
    let id_bytes = match ids {
        IdKind::Integer => 8,
        IdKind::Uuid => 16,
    };
    let since_bytes = if expected.with_since { 20 } else { 0 };
    expected.edges.saturating_mul(15 + 5 * id_bytes + since_bytes)
}

/// Returns an error unless the disk of a folder has this many bytes free.
pub(crate) fn require(folder: &Path, needed: u64) -> Result<()> {
    // Unknown free space: try the import.
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if needed <= free {
        return Ok(());
    }
    let detail = format!(
        "the import needs about {} of disk space, and {} are free; free some space and try again",
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
    fn the_error_has_both_sizes() {
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
