//! Signals in the middle of a command's long work: SIGTERM and SIGINT end it at once, with a status that says so. What was to
//! become a file is removed; a store is as after a crash, which takes nothing back and shows nothing half done.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::serve::on_stop;

/// Temporary files that this process has made, which are removed when it is interrupted.
static TEMPORARY_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes a temporary file, and remembers its path.
pub fn remember_temporary<T>(make: impl FnOnce() -> io::Result<(T, PathBuf)>) -> io::Result<T> {
    // Held meanwhile, so that no file is made that an interruption does not know of.
    let mut files = temporary_files();
    let (made, path) = make()?;
    files.push(path);
    Ok(made)
}

fn temporary_files() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGTERM and SIGINT end the process at once.
pub fn end_at_once() -> io::Result<()> {
    on_stop(|signal| {
        let files = temporary_files();
        for path in files.iter() {
            // One that is in its place by now, or was given up, is not there any more.
            let _ = std::fs::remove_file(path);
        }
        // Nobody is left to tell where this can't be written.
        let _ = writeln!(
            io::stderr(),
            "kinfolk: interrupted by {} before it was done; run it again",
            signal.name()
        );
        std::process::exit(i32::from(signal.exit_status()))
    })
}
