//! The marker of a restore that has not finished: while it is there, the folder is no store, and everything that a restore makes
//! in it may be replaced. What a restore makes is not known here.
//!
//! `unfinished-restore` is text, the line `kinfolk restore`. It is durable before anything else of the store is made, and removed
//! when all of that is durable. A stop while the marker is written leaves a part of the line, and nothing else.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use kinfolk_core::{Error, Result};

use crate::disk::files::{self, IoContext};

const FILE_NAME: &str = "unfinished-restore";
const LINE: &[u8] = b"kinfolk restore\n";

/// What there is in the marker's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// Nothing.
    Absent,
    /// A part of a marker: nothing was restored yet.
    Torn,
    /// A marker: a restore was stopped, or is running.
    Whole,
    /// Something that no restore has made.
    Foreign,
}

impl Marker {
    /// Looks at a folder, which may be missing.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Ok(Self::Foreign),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Self::Absent);
            }
            Err(error) => return Err(files::io_error("reading", &path, &error)),
        }
        let mut text = Vec::new();
        let file = File::open(&path).during("opening", &path)?;
        file.take(LINE.len() as u64 + 1).read_to_end(&mut text).during("reading", &path)?;
        // What was not synced before the power failed may be there as zeros.
        let is_part = text.len() <= LINE.len()
            && text.iter().zip(LINE).all(|(&found, &byte)| found == byte || found == 0);
        Ok(match text.as_slice() {
            LINE => Self::Whole,
            _ if is_part => Self::Torn,
            _ => Self::Foreign,
        })
    }

    /// Refuses a folder in which a restore was stopped, or is running.
    pub(crate) fn refuse(folder: &Path) -> Result<()> {
        match Self::of(folder)? {
            Self::Absent | Self::Foreign => Ok(()),
            Self::Torn | Self::Whole => Err(Error::invalid_store(format!(
                "a restore into {} has not finished; unless it is still running, run 'kinfolk restore' again into this folder",
                folder.display()
            ))),
        }
    }

    /// Sets the marker, durably, in a folder that has none.
    pub(crate) fn set(folder: &Path) -> Result<()> {
        let path = folder.join(FILE_NAME);
        let mut file = File::create_new(&path).during("creating", &path)?;
        file.write_all(LINE).during("writing", &path)?;
        file.sync_all().during("syncing", &path)?;
        files::sync_folder(folder)
    }

    /// Removes the marker, durably. What was made before is durable already.
    pub(crate) fn remove(folder: &Path) -> Result<()> {
        files::remove_file(&folder.join(FILE_NAME))?;
        files::sync_folder(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_restore_has_written_is_a_marker() {
        let folder = tempfile::tempdir().unwrap();
        let of = || Marker::of(folder.path()).unwrap();
        assert_eq!(
            (of(), Marker::of(Path::new("/missing/folder")).unwrap()),
            (Marker::Absent, Marker::Absent)
        );
        Marker::set(folder.path()).unwrap();
        assert_eq!(of(), Marker::Whole);
        assert!(
            Marker::refuse(folder.path()).unwrap_err().to_string().contains("run 'kinfolk restore' again")
        );

        let path = folder.path().join(FILE_NAME);
        for (text, expected) in [
            (&b""[..], Marker::Torn),
            (b"kinfolk", Marker::Torn),
            (&[0; 16], Marker::Torn),
            (b"kinfolk restore\n\n", Marker::Foreign),
            (b"my restore", Marker::Foreign),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(of(), expected, "{text:?}");
        }
        Marker::remove(folder.path()).unwrap();
        assert_eq!(of(), Marker::Absent);
        fs::create_dir(&path).unwrap();
        assert_eq!(of(), Marker::Foreign);
    }
}
