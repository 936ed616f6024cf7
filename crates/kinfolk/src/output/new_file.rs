//! A new file: written, then moved to its path, where nothing may exist.

use std::io;
use std::path::Path;

use anyhow::Result;
use kinfolk_core::Error;

use super::OutputFile;

/// Creates a file with the content that `fill` writes. It appears when it is complete and durable. An existing file or link
/// of that name is left alone and is an error.
pub(crate) fn write_new_file<T>(path: &Path, fill: impl FnOnce(&mut OutputFile) -> Result<T>) -> Result<T> {
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
