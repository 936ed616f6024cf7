//! The checkpoint: how far rows were known to be stored, and the clock's floor then.
//!
//! Rows that end before it have lost something. Text with a checksum: `rows POSITION`, `floor MILLISECONDS`. A missing
//! or damaged checkpoint only means that this is not checked, and that the floor comes from the log alone.

use std::fs;
use std::path::Path;

use kinfolk_core::{Result, Sequence, Timestamp};

use crate::disk::files;

const FILE_NAME: &str = "checkpoint";

/// What a checkpoint says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Rows are stored at least up to here.
    pub rows: Sequence,
    /// The earliest `since` that may be given out.
    pub floor: Timestamp,
}

impl Checkpoint {
    /// Reads the checkpoint of a store.
    pub(crate) fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(FILE_NAME)).unwrap_or_default();
        let number = |name| files::text_field(files::open_text(&text)?, name)?.parse().ok();
        let (rows, floor) = (number("rows").unwrap_or(0), number("floor").unwrap_or(0));
        Self { rows: Sequence(rows), floor: Timestamp::from_millis(floor) }
    }

    /// Replaces the checkpoint of a store.
    pub(crate) fn write(self, folder: &Path) -> Result<()> {
        let lines = format!("rows {}\nfloor {}\n", self.rows, self.floor.millis());
        files::replace_text(&folder.join(FILE_NAME), &lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_damage() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkpoint::read(folder.path()), Checkpoint::default());
        let checkpoint = Checkpoint { rows: Sequence(9), floor: Timestamp::from_millis(77) };
        checkpoint.write(folder.path()).unwrap();
        assert_eq!(Checkpoint::read(folder.path()), checkpoint);
        fs::write(folder.path().join(FILE_NAME), "rows 1\nfloor 2\nchecksum 00000000\n").unwrap();
        assert_eq!(Checkpoint::read(folder.path()), Checkpoint::default());
    }
}
