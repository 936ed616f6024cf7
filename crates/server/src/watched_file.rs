//! A small file that may be replaced while the server runs: keys, certificates. What is in it is not known here.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kinfolk_core::{Error, Result};
use parking_lot::Mutex;

const BYTES_MAX: u64 = 4 << 20;

/// A file and what was last seen in it.
///
/// Looking reads the content instead of trusting its time: these files are small, and a second change within the
/// resolution of the file system's clock must not be missed.
#[derive(Debug)]
pub(crate) struct WatchedFile {
    path: PathBuf,
    seen: Mutex<Option<Seen>>,
}

#[derive(Debug, PartialEq)]
enum Seen {
    Content(blake3::Hash),
    Failed(io::ErrorKind),
}

/// What is in a file now.
struct Look {
    content: Result<Vec<u8>>,
    /// Whether the last look has found something else.
    is_new: bool,
}

impl WatchedFile {
    /// A file that has not been looked at yet.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), seen: Mutex::new(None) }
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is in the file now.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        self.look().content
    }

    /// What is in the file, or why it can't be read, if that is not what the last look has found.
    pub(crate) fn read_if_changed(&self) -> Option<Result<Vec<u8>>> {
        let look = self.look();
        look.is_new.then_some(look.content)
    }

    /// Hands the content on if it has changed. Says whether it has.
    pub(crate) fn apply_if_changed(&self, apply: impl FnOnce(&[u8]) -> Result<()>) -> Result<bool> {
        match self.read_if_changed() {
            Some(content) => apply(&content?).map(|()| true),
            None => Ok(false),
        }
    }

    fn look(&self) -> Look {
        let read = read_bounded(&self.path);
        let found = match &read {
            Ok(content) => Seen::Content(blake3::hash(content)),
            Err(error) => Seen::Failed(error.kind()),
        };
        let mut seen = self.seen.lock();
        let is_new = seen.as_ref() != Some(&found);
        *seen = Some(found);
        let content = read.map_err(|error| self.invalid(format_args!("can't be read: {error}")));
        Look { is_new, content }
    }

    /// An error about this file.
    pub(crate) fn invalid(&self, problem: impl std::fmt::Display) -> Error {
        Error::InvalidInput { detail: format!("{}: {problem}", self.path.display()) }
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 4 MiB"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = WatchedFile::new(folder.path().join("keys"));
        let missing = file.read_if_changed().unwrap().unwrap_err();
        assert!(missing.to_string().contains("keys"), "{missing}");
        assert!(file.read_if_changed().is_none(), "a lasting failure is reported once");

        // Same length, same moment: only the content differs.
        for content in ["one", "two"] {
            std::fs::write(file.path(), content).unwrap();
            assert_eq!(file.read_if_changed().unwrap().unwrap(), content.as_bytes());
            assert!(file.read_if_changed().is_none());
        }
        assert_eq!(file.read().unwrap(), b"two");
    }
}
