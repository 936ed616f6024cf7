//! Errors of the trees, as ours: which of them are damage, which a failure of the storage, and which pass.

use std::io;
use std::time::Duration;

use kinfolk_core::Error;
use rustix::io::Errno;

/// When to try again what the system had no file or memory for.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Turns an error of the trees into ours.
pub(crate) fn tree_error(error: lsm_tree::Error) -> Error {
    match error {
        lsm_tree::Error::Io(io) if io.kind() == io::ErrorKind::StorageFull => {
            Error::StorageFull { detail: io.to_string() }
        }
        // A file that ends too early or is gone is damage, not a passing failure.
        lsm_tree::Error::Io(io)
            if matches!(io.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound) =>
        {
            Error::corrupt(format!("a row file is cut short or missing ({io}); restore from a backup"))
        }
        lsm_tree::Error::Io(io) if is_passing(&io) => {
            Error::Unavailable { what: format!("row files ({io})"), retry_after: RETRY_AFTER }
        }
        lsm_tree::Error::Io(io) => Error::storage(io.to_string()),
        other => Error::corrupt(format!("a row file is damaged ({other:?}); restore from a backup")),
    }
}

/// Whether the system had no file or memory left, for a moment: nothing was written or synced then, and it may be tried again.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| passing.iter().any(|errno| errno.raw_os_error() == code))
}
