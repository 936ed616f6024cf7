//! Replaying the log at a start: each projection gets exactly the events that it lacks.

use std::fs;
use std::path::Path;

use kinfolk_core::{Error, Result, Sequence};

use crate::disk::files::{self, IoContext};
use crate::disk::format::Content;
use crate::edges::Edges;
use crate::edges::imports::{self, ImportTarget};
use crate::log::{Event, EventBody};
use crate::lsm::RowStorage;
use crate::projection::Projections;
use crate::settings::Settings;

/// What is said of rows that a start can't write to disk.
const KEPT_IN_MEMORY: &str =
    "the disk is full: rows are kept in memory, and writes are refused until there is room";

/// Brings all projections, each from where it is, to the end of the log.
pub(crate) struct Replay<'a> {
    pub folder: &'a Path,
    pub projections: &'a Projections,
    pub edges: &'a Edges,
    pub settings: &'a Settings,
    /// Up to where the index has the log.
    pub indexed: Sequence,
    /// The index comes from the pairs: it may have a part of an import that is not applied to all rows.
    pub is_index_rebuilt: bool,
    /// An import was applied: the next start should not have to do that again.
    pub imported: bool,
    /// The index can't be replayed, only rebuilt: an import that it lacks is applied to the rows and gone.
    pub lost: bool,
}

impl Replay<'_> {
    /// Applies the events of a frame to all that lack them.
    pub(crate) fn apply(&mut self, events: &[Event]) -> Result<()> {
        // An import is an event of its own frame: see `bulk::import`.
        if let [Event { body: EventBody::Imported { number, .. }, .. }] = events {
            return self.apply_import(&events[0], *number);
        }
        let Some(last) = events.last() else { return Ok(()) };
        self.projections.all().try_for_each(|projection| projection.replay(events))?;
        for rows in self.projections.rows(Content::NEWEST).filter(|rows| rows.is_large(self.settings)) {
            rows.seal(last.position);
            files::unless_full(rows.flush(), KEPT_IN_MEMORY)?;
        }
        Ok(())
    }

    /// Rows and index of edges get an import together, from files: it is the one event that a single projection can't apply.
    fn apply_import(&mut self, event: &Event, number: u64) -> Result<()> {
        let rows = &self.edges.rows;
        let trees = rows.applied_at_open.map(|applied| event.position > applied);
        let index = event.position > self.indexed && !self.lost;
        let rows_lack_it = trees.contains(&true);
        if !index && !rows_lack_it {
            return Ok(());
        }
        // Edges that an import finds already there are looked up in the index, so it must be complete here.
        if rows_lack_it && (self.is_index_rebuilt || self.lost) {
            return Err(Error::corrupt(format!(
                "an import was stopped half-way and the index snapshot in {} is damaged: restore from a backup",
                self.folder.display()
            )));
        }
        // Older rows must be below those of the import, not above them.
        rows.seal(event.position);
        rows.flush()?;
        if rows_lack_it || imports::is_kept(self.folder, number) {
            let target = ImportTarget { edges: self.edges, trees, index };
            imports::apply(self.folder, &target, event, self.settings, &|_| {})?;
            let folder = imports::import_folder(self.folder, number);
            fs::remove_dir_all(&folder).during("removing", &folder)?;
            self.imported = true;
        } else {
            self.lost = true;
        }
        Ok(())
    }
}
