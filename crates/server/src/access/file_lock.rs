//! Replaces a file that other processes change, too: one at a time, and as a whole. The content does not matter here.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kinfolk_core::{Error, Result};

/// How long to wait for another process that changes the file, and how often to try again.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_RETRY_EVERY: Duration = Duration::from_millis(5);

/// The right to replace a file, for as long as this lives.
///
/// It locks the file itself: its folder may be that of a store, which a server locks, and a lock file beside it would stay
/// behind. The lock goes with the file when that is replaced, so a waiting process opens the file again.
pub(crate) struct FileLock {
    file: File,
    is_created: bool,
}

impl FileLock {
    /// Waits for the lock. A missing file is created, empty.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| Error::InvalidInput {
            detail: format!("{} can't be locked: {error}", path.display()),
        };
        if fs::symlink_metadata(path).is_ok_and(|entry| entry.is_symlink()) && !path.exists() {
            let detail = format!("{} is a link that leads nowhere; remove it and try again", path.display());
            return Err(Error::InvalidInput { detail });
        }
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let mut is_created = false;
        loop {
            match File::open(path) {
                Ok(file) => match file.try_lock() {
                    Ok(()) if is_at(&file, path).map_err(failed)? => return Ok(Self { file, is_created }),
                    Ok(()) | Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(error)) => return Err(failed(error)),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => match create_private(path) {
                    Ok(_) => {
                        is_created = true;
                        continue;
                    }
                    // Another process was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(failed(error)),
                },
                Err(error) => return Err(failed(error)),
            }
            if Instant::now() >= deadline {
                let detail = format!("another process is changing {}; try again", path.display());
                return Err(Error::InUse { detail });
            }
            std::thread::sleep(LOCK_RETRY_EVERY);
        }
    }

    /// Removes the file if this lock created it and it is still empty.
    pub(crate) fn leave_no_trace(&self, path: &Path) {
        let is_empty = self.file.metadata().is_ok_and(|file| file.len() == 0);
        if self.is_created && is_empty && is_at(&self.file, path).unwrap_or(false) {
            // An empty file means the same as none.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether an open file is the one that a path names.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces a file as a whole; a former one's owner and permissions stay.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let written = PathBuf::from(name);
    match fs::remove_file(&written) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create_private(&written)?;
    if let Ok(former) = fs::metadata(path) {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (former.uid(), former.gid()) {
            fchown(&file, Some(former.uid()), Some(former.gid()))?;
        }
        file.set_permissions(former.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&written, path)?;
    File::open(folder_of(path))?.sync_all()
}

/// Creates a file that only its owner can open, from the start and regardless of the umask.
fn create_private(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_a_file_before_it_has_its_name() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.new");
        let created = create_private(&path).unwrap().metadata().unwrap();
        assert_eq!((created.permissions().mode() & 0o777, created.len()), (0o600, 0));
    }

    #[test]
    fn what_an_earlier_change_has_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let (path, left) = (folder.path().join("keys"), folder.path().join("keys.new"));
        fs::write(&left, "left").unwrap();
        replace(&path, "text").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        assert!(!left.exists());
    }
}
