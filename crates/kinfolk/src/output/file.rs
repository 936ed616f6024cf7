//! A file that appears whole or not at all: written beside its place under a name of its own, synced, then renamed. Nothing
//! else in the folder is touched.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::interrupt::remember_temporary;

/// A file in the making.
#[derive(Debug)]
pub enum OutputFile {
    /// A temporary file, where it will be, and whether it may replace what is there.
    Beside { temporary: NamedTempFile, place: PathBuf, may_replace: bool },
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
        Ok(Self::Beside { temporary: temporary(&place)?, place, may_replace: true })
    }

    /// Begins a file at a place where there is nothing, not even a link that leads nowhere. What comes there until the commit
    /// is not replaced either.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(_) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let place = path.to_owned();
        Ok(Self::Beside { temporary: temporary(&place)?, place, may_replace: false })
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
            Self::Beside { temporary, place, may_replace } => {
                temporary.as_file().sync_all()?;
                let folder = temporary.path().parent().map(Path::to_owned);
                let persisted =
                    if may_replace { temporary.persist(&place) } else { temporary.persist_noclobber(&place) };
                persisted.map_err(|failed| failed.error)?;
                folder.map_or(Ok(()), |folder| File::open(folder)?.sync_all())
            }
        }
    }
}

/// A file in the folder of another one, under a name that nothing has.
fn temporary(place: &Path) -> io::Result<NamedTempFile> {
    let folder = match place.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    remember_temporary(|| {
        let file = tempfile::Builder::new()
            .prefix(".kinfolk-")
            // The process's umask takes away what should not be allowed.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        let path = file.path().to_owned();
        Ok((file, path))
    })
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
    fn a_new_file_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        let mut file = OutputFile::create_new(&path).unwrap();
        file.write_all(b"new").unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::AlreadyExists, "it came meanwhile");
        assert_eq!(OutputFile::create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
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
