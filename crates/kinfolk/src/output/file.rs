//! A file that appears whole or not at all: written beside its place, synced, then renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file in the making.
#[derive(Debug)]
pub enum OutputFile {
    /// A temporary file, and where it will be.
    Beside { temporary: NamedTempFile, place: PathBuf },
    /// A pipe or device, which a rename would replace.
    Direct(File),
}

impl OutputFile {
    /// Begins a file at a place.
    pub fn create(path: &Path) -> io::Result<Self> {
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return Ok(Self::Direct(File::options().write(true).open(path)?));
        }
        // A link stays a link: the file that it names is replaced.
        let place = if existing.is_some() { path.canonicalize()? } else { path.to_owned() };
        let folder = match place.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let temporary = tempfile::Builder::new()
            .prefix(".kinfolk-")
            // The process's umask takes away what should not be allowed.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        Ok(Self::Beside { temporary, place })
    }

    /// Where the content is until the commit; nowhere for a pipe or device.
    pub fn content(&self) -> Option<&Path> {
        match self {
            Self::Beside { temporary, .. } => Some(temporary.path()),
            Self::Direct(_) => None,
        }
    }

    /// Makes the file durable and puts it in its place.
    pub fn commit(self) -> io::Result<()> {
        match self {
            Self::Direct(mut file) => file.flush(),
            Self::Beside { temporary, place } => {
                temporary.as_file().sync_all()?;
                let folder = temporary.path().parent().map(Path::to_owned);
                temporary.persist(&place).map_err(|failed| failed.error)?;
                folder.map_or(Ok(()), |folder| File::open(folder)?.sync_all())
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside { temporary, .. } => temporary.as_file_mut().write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside { temporary, .. } => temporary.as_file_mut().flush(),
            Self::Direct(file) => file.flush(),
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
