//! Replaying the log at a start: each projection gets exactly the events that it lacks.

use std::path::Path;

use kinfolk_core::{EdgeKind, Error, Result, Sequence};

use crate::bulk;
use crate::comments::Comments;
use crate::disk::files;
use crate::disk::format::Identity;
use crate::edges::index::Index;
use crate::edges::{Rows, Tree};
use crate::engine::store::projections;
use crate::log::{Event, EventBody};
use crate::posts::Posts;
use crate::settings::Settings;

/// Applies what an event says of an edge to the index.
pub fn apply_to_index(index: &Index, event: &Event) {
    match event.body {
        EventBody::Followed(edge) => {
            index.insert(event.kind, edge);
        }
        EventBody::Unfollowed(edge, _) => {
            index.remove(event.kind, edge);
        }
        EventBody::Imported { .. }
        | EventBody::Posted(_)
        | EventBody::PostDeleted { .. }
        | EventBody::Comment(_) => {}
    }
}

/// What is said of rows that a start can't write to disk.
const KEPT_IN_MEMORY: &str =
    "the disk is full: rows are kept in memory, and writes are refused until there is room";

/// Brings rows, posts and index, each from where it is, to the end of the log.
pub struct Replay<'a> {
    pub folder: &'a Path,
    pub rows: &'a Rows,
    pub posts: &'a Posts,
    pub comments: &'a Comments,
    pub index: &'a Index,
    pub settings: &'a Settings,
    pub applied: [Sequence; 3],
    /// How far posts and comments are.
    pub projected: [Sequence; 2],
    /// Up to where the index has the log.
    pub indexed: Sequence,
    /// The index comes from the pairs: it may have a part of an import that is not applied to all rows.
    pub rebuilt: bool,
    /// An import was applied: the next start should not have to do that again.
    pub imported: bool,
    /// The index can't be replayed, only rebuilt: an import that it lacks is applied to the rows and gone.
    pub lost: bool,
}

impl Replay<'_> {
    /// Applies the events of a frame to all that lack them.
    pub fn apply(&mut self, events: &[Event]) -> Result<()> {
        // An import is an event of its own frame: see `Import::finish`.
        if let [Event { body: EventBody::Imported { number, .. }, .. }] = events {
            return self.apply_import(&events[0], *number);
        }
        self.rows.apply(events, self.applied);
        let [posts_applied, threads_applied] = self.projected;
        self.posts.apply(events, posts_applied);
        self.comments.apply(events, threads_applied)?;
        for (_, tree) in projections(self.posts, self.comments) {
            if let Some(last) = events.last().filter(|_| tree.unsealed() >= self.settings.flush_post_bytes) {
                tree.seal(last.position);
                files::unless_full(tree.flush(), KEPT_IN_MEMORY)?;
            }
        }
        for event in events.iter().filter(|event| event.position > self.indexed) {
            apply_to_index(self.index, event);
        }
        if self.rows.unsealed() >= self.settings.flush_rows {
            files::unless_full(flush(self.rows), KEPT_IN_MEMORY)?;
        }
        Ok(())
    }

    fn apply_import(&mut self, event: &Event, number: u64) -> Result<()> {
        let trees = self.applied.map(|applied| event.position > applied);
        let indexed = event.position > self.indexed && !self.lost;
        if !indexed && !trees.contains(&true) {
            return Ok(());
        }
        let rows_lack_it = trees.contains(&true);
        // Edges that an import finds already there are looked up in the index, so it must be complete here.
        if rows_lack_it && (self.rebuilt || self.lost) {
            return Err(Error::Corrupt {
                detail: format!(
                    "an import was stopped half-way and the index snapshot in {} is damaged: restore from a backup",
                    self.folder.display()
                ),
            });
        }
        // Older rows must be below those of the import, not above them.
        flush(self.rows)?;
        if rows_lack_it || bulk::is_import_kept(self.folder, number) {
            bulk::apply_import(self.folder, (self.rows, self.index), event, (trees, indexed), self.settings)?;
            self.imported = true;
        } else {
            self.lost = true;
        }
        Ok(())
    }
}

/// Brings all recent rows into the trees. Only where no batch can come in between.
pub fn flush(rows: &Rows) -> Result<()> {
    rows.seal();
    rows.flush()
}

/// An index of the edges that the trees have.
pub fn rebuild_index(rows: &Rows, identity: Identity) -> Result<Index> {
    let index = Index::new(identity.ids);
    for kind in EdgeKind::ALL {
        let mut follower = None;
        let mut followees = Vec::new();
        for row in rows.scan(Tree::Pairs, kind) {
            let (edge, _) = row?;
            if follower != Some(edge.follower) {
                if let Some(follower) = follower.replace(edge.follower) {
                    index.extend(kind, follower, &followees);
                }
                followees.clear();
            }
            followees.push(edge.followee);
        }
        if let Some(follower) = follower {
            index.extend(kind, follower, &followees);
        }
    }
    Ok(index)
}
