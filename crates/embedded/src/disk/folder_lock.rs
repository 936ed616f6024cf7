//! The lock that keeps a folder to one process. Not what the folder holds.
//!
//! Two locks are held, both released when the process ends, however it ends: one on the folder itself, which nobody can
//! remove without removing the store, and one on the file `LOCK`, which is all that older versions know.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kinfolk_core::{Error, Result};

use crate::disk::files::{self, IoContext};

/// The file that is locked beside the folder.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// Holds a folder for this process; released when dropped, also by a crash.
#[derive(Debug)]
pub(crate) struct FolderLock {
    path: PathBuf,
    folder: File,
    _file: File,
}

impl FolderLock {
    /// Takes the folder, or says who is in the way.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        let folder = File::open(path).during("opening", path)?;
        match folder.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path)),
            // Some network file systems can't lock folders; the file is what is left there.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(folder = %path.display(), %error, "the folder itself can't be locked; do not remove the file LOCK in it");
            }
        }
        let file_path = path.join(LOCK_FILE);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&file_path)
            .during("opening", &file_path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_path_buf(), folder, _file: file }),
            Err(TryLockError::WouldBlock) => Err(in_use(path)),
            Err(TryLockError::Error(error)) => Err(files::io_error("locking", &file_path, &error)),
        }
    }

    /// The folder that is held.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to the folder that is held; if not, why nothing may be written there any more:
    /// another process may own what is there now.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let moved = || {
            let path = self.path.display();
            format!("the folder {path} was moved or replaced while it was open; put it back, then restart")
        };
        let identity = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
        match (self.folder.metadata(), fs::metadata(&self.path)) {
            (Ok(held), Ok(found)) if identity(&held) != identity(&found) => Err(moved()),
            (_, Err(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(moved())
            }
            // What can't be looked at can't be written to either, which is noticed where it is tried.
            _ => Ok(()),
        }
    }
}

fn in_use(path: &Path) -> Error {
    Error::in_use(format!(
        "{} is open in another Kinfolk process; stop it first, or name another folder",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_whatever_becomes_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let is_taken = || matches!(FolderLock::take(folder.path()), Err(Error::InUse { .. }));
        let held = FolderLock::take(folder.path()).unwrap();
        assert!(is_taken());
        fs::remove_file(folder.path().join(LOCK_FILE)).unwrap();
        assert!(is_taken());
        drop(held);
        FolderLock::take(folder.path()).unwrap();
    }

    /// A process of an older version locks the file alone.
    #[test]
    fn a_holder_of_the_file_is_respected() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join(LOCK_FILE)).unwrap();
        file.lock().unwrap();
        assert!(matches!(FolderLock::take(folder.path()), Err(Error::InUse { .. })));
    }

    #[test]
    fn a_folder_that_was_moved_or_replaced_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (parent.path().join("store"), parent.path().join("elsewhere"));
        fs::create_dir(&path).unwrap();
        let held = FolderLock::take(&path).unwrap();
        held.check().unwrap();
        fs::rename(&path, &elsewhere).unwrap();
        assert!(held.check().unwrap_err().contains("moved"));
        assert!(matches!(FolderLock::take(&elsewhere), Err(Error::InUse { .. })));
        fs::create_dir(&path).unwrap();
        assert!(held.check().unwrap_err().contains("moved"));
        fs::remove_dir_all(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
        held.check().unwrap();
    }
}
