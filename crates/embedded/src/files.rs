//! Small helpers for files: durable replacement, folder syncs, and one way of turning I/O errors into ours.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use kinfolk_core::{Error, Result};

/// Says what was being done when an I/O error happened. A full disk keeps its own error.
pub fn io_error(doing: &str, path: &Path, error: &io::Error) -> Error {
    let detail = format!("{doing} {}: {error}", path.display());
    if error.kind() == io::ErrorKind::StorageFull {
        Error::StorageFull { detail }
    } else {
        Error::Storage { detail }
    }
}

/// Adds what was being done, and to which path, to an I/O result.
pub trait IoContext<T> {
    /// Turns the error into ours.
    fn during(self, doing: &str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, doing: &str, path: &Path) -> Result<T> {
        self.map_err(|error| io_error(doing, path, &error))
    }
}

/// Makes the entries of a folder durable: new, renamed and removed files.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|handle| handle.sync_all()).during("syncing folder", folder)
}

/// Creates a folder if it is missing, durably.
pub fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).during("creating folder", folder)?;
    folder.parent().map_or(Ok(()), |parent| {
        sync_folder(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
    })
}

/// Replaces a file as a whole: after a crash it has either its old content or the new one.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary).during("creating", &temporary)?;
    file.write_all(content).during("writing", &temporary)?;
    file.sync_all().during("syncing", &temporary)?;
    drop(file);
    fs::rename(&temporary, path).during("replacing", path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Removes a file that may be missing.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", path, &error)),
        _ => Ok(()),
    }
}

/// Reads a file that a store can do without: where it is missing or can't be used there is nothing, and `instead` says what
/// happens then. What a process has left that was stopped while it wrote the file is removed.
pub fn read_dispensable<T>(
    path: &Path,
    instead: &'static str,
    read: impl FnOnce(File) -> io::Result<T>,
) -> Result<Option<T>> {
    remove_file(&path.with_extension("tmp"))?;
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.during("opening", path)?,
    };
    match read(file) {
        Ok(content) => Ok(Some(content)),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "a file is not usable: {instead}");
            Ok(None)
        }
    }
}

/// Lines of text with a checksum in the last one, for small files that people may want to read.
pub fn seal_text(lines: &str) -> String {
    format!("{lines}checksum {:08x}\n", crc32c::crc32c(lines.as_bytes()))
}

/// The lines before the checksum, if it is right.
pub fn open_text(text: &str) -> Option<&str> {
    let at = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let (lines, checksum) = text.split_at_checked(at)?;
    let expected = format!("checksum {:08x}\n", crc32c::crc32c(lines.as_bytes()));
    (checksum == expected).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_text_opens_and_any_change_is_seen() {
        let sealed = seal_text("kinfolk\nformat 1\n");
        assert_eq!(open_text(&sealed), Some("kinfolk\nformat 1\n"));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone().into_bytes();
            damaged[at] ^= 1;
            let damaged = String::from_utf8_lossy(&damaged).into_owned();
            assert_eq!(open_text(&damaged), None, "at {at}");
            assert_eq!(open_text(&sealed[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace_file(&path, b"one").unwrap();
        replace_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
