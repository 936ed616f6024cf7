//! Signals during the long work of a command: SIGTERM and SIGINT end the process with the usual exit status. Temporary
//! files are removed; a store recovers as after a crash.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use crate::signals::on_stop;

/// The temporary files of this process, removed when it is interrupted.
static TEMPORARY_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Creates a temporary file and registers it for removal.
pub(crate) fn register_temporary(
    create: impl FnOnce() -> io::Result<NamedTempFile>,
) -> io::Result<NamedTempFile> {
    // Locked while the file is created, so that an interruption finds every file registered.
    let mut files = temporary_files();
    let file = create()?;
    files.push(file.path().to_owned());
    Ok(file)
}

fn temporary_files() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process on SIGTERM and SIGINT from now on.
pub(crate) fn end_at_once() -> io::Result<()> {
    on_stop(|signal| {
        let files = temporary_files();
        for path in files.iter() {
            // It may be renamed or removed already.
            let _ = std::fs::remove_file(path);
        }
        // Locked until the end, so that no progress follows. A closed stderr cannot be reported.
        let mut out = io::stderr().lock();
        let _ = writeln!(out, "kinfolk: interrupted by {} before it was done; run it again", signal.name());
        std::process::exit(i32::from(signal.exit_status()))
    })
}
