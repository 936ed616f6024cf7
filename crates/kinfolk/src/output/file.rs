//! A file that appears completely or not at all: written under a temporary name in the same folder, synced, then
//! renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::json_lines::JsonLines;
use crate::interrupt::register_temporary;
use crate::standard_output::StandardOutput;

/// An output file before its commit.
pub(crate) enum OutputFile {
    /// A temporary file, its final path, and whether it may replace a file there.
    Beside { temporary: NamedTempFile, path: PathBuf, may_replace: bool },
    /// Standard output, or a pipe or device, which a rename would replace.
    Direct(Box<dyn Write + Send>),
}

impl OutputFile {
    /// Starts a file of rows; `-` is standard output, where `json` makes CSV lines of JSON.
    pub(crate) fn create_rows(path: &Path, json: bool) -> io::Result<Self> {
        if json && path == Path::new("-") {
            // The lines are written in small pieces.
            let out = BufWriter::with_capacity(64 << 10, StandardOutput::new());
            return Ok(Self::Direct(Box::new(JsonLines::new(out))));
        }
        Self::create(path)
    }

    /// Starts a file; `-` is standard output.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Direct(Box::new(StandardOutput::new())));
        }
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return Ok(Self::Direct(Box::new(File::options().write(true).open(path)?)));
        }
        // A symbolic link remains; the file it points to is replaced.
        let path = if existing.is_some() { path.canonicalize()? } else { path.to_owned() };
        Ok(Self::Beside { temporary: temporary(&path)?, path, may_replace: true })
    }

    /// Starts a file at a path where nothing exists, not even a dangling link. The commit fails if something exists there
    /// by then.
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(_) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let path = path.to_owned();
        Ok(Self::Beside { temporary: temporary(&path)?, path, may_replace: false })
    }

    /// The path of the content before the commit; none for a pipe, a device and standard output.
    pub(crate) fn content(&self) -> Option<&Path> {
        match self {
            Self::Beside { temporary, .. } => Some(temporary.path()),
            Self::Direct(_) => None,
        }
    }

    /// Syncs the file and moves it to its path.
    pub(crate) fn commit(self) -> io::Result<()> {
        match self {
            Self::Direct(mut out) => out.flush(),
            Self::Beside { temporary, path, may_replace } => {
                temporary.as_file().sync_all()?;
                let folder = temporary.path().parent().map(Path::to_owned);
                let persisted =
                    if may_replace { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
                persisted.map_err(|failed| failed.error)?;
                folder.map_or(Ok(()), |folder| File::open(folder)?.sync_all())
            }
        }
    }
}

/// Creates a temporary file in the folder of `path`.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    register_temporary(|| {
        tempfile::Builder::new()
            .prefix(".kinfolk-")
            // The umask applies.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
    })
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside { temporary, .. } => temporary.as_file_mut().write(bytes),
            Self::Direct(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside { temporary, .. } => temporary.as_file_mut().flush(),
            Self::Direct(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_seen_before_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");

        drop(OutputFile::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"new", "given up");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_new_file_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        let mut file = OutputFile::create_new(&path).unwrap();
        file.write_all(b"new").unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::AlreadyExists, "it came meanwhile");
        let again = OutputFile::create_new(&path).err().map(|error| error.kind());
        assert_eq!(again, Some(io::ErrorKind::AlreadyExists));
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        let mut file = OutputFile::create_new(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let mut null = OutputFile::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"x").unwrap();
        null.commit().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());

        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut file = OutputFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(OutputFile::create(folder.path()).is_err());
    }
}
