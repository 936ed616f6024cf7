//! A file that was not there before: filled, then put in its place, which it shares with nothing.

use std::io;
use std::path::Path;

use anyhow::Result;
use kinfolk_core::Error;

use super::OutputFile;

/// Makes a file and fills it. It appears when it is filled and durable; otherwise nothing does. Whatever has its name, a link
/// too, is left as it is.
pub fn write_new_file<T>(path: &Path, fill: impl FnOnce(&mut OutputFile) -> Result<T>) -> Result<T> {
    let mut out = OutputFile::create_new(path).map_err(|error| refused(path, error))?;
    let filled = fill(&mut out)?;
    out.commit().map_err(|error| refused(path, error))?;
    Ok(filled)
}

fn refused(path: &Path, error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        let detail = format!("{} exists already; name another file", path.display());
        return Error::InvalidInput { detail }.into();
    }
    anyhow::Error::new(error).context(format!("could not write {}", path.display()))
}
