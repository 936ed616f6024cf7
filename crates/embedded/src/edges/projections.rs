//! The two projections of edges: the rows, and the index with the cache of recent followees.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::{EdgeKind, Epoch, Result, Sequence, Timestamp};

use super::index::{self, Index};
use super::reconcile::EdgeReconcile;
use super::{Edges, Rows, Tree, backup, verify};
use crate::disk::backup_file::BackupPart;
use crate::disk::format::{Content, Identity};
use crate::log::{Event, EventBody};
use crate::lsm::RowStorage;
use crate::projection::{Projection, Reconcile, Suspects};
use crate::runtime::folder::StoreFolder;

/// The rows.
impl Projection for Arc<Edges> {
    fn content(&self) -> Content {
        Content::Edges
    }

    fn applied(&self) -> Result<Sequence> {
        self.rows.applied()
    }

    fn apply(&self, events: &[Event]) -> Result<()> {
        self.rows.apply(events);
        Ok(())
    }

    fn rows(&self) -> Option<&dyn RowStorage> {
        Some(&self.rows)
    }

    /// The index is compared with the rows in the same pass.
    fn compare(&self, _: Timestamp, suspects: &mut Suspects<'_>) -> Result<()> {
        EdgeKind::ALL.into_iter().try_for_each(|kind| verify::compare(self, kind, suspects))
    }

    fn back_up(&self) -> Result<Option<BackupPart>> {
        Ok(Some(backup::back_up(self)))
    }

    fn reconcile(&self) -> Option<Box<dyn Reconcile>> {
        Some(Box::new(EdgeReconcile::new(self)))
    }
}

/// An index as a start finds it.
pub(crate) struct LoadedIndex {
    pub index: Index,
    /// Up to where it has the log.
    pub applied: Sequence,
    /// Up to where its snapshot has the log, if there is one that is sound.
    pub snapshotted: Option<Sequence>,
}

impl LoadedIndex {
    /// Loads the snapshot; where there is none, or it is not to be used, builds the index from the pairs.
    pub(crate) fn open(
        folder: &Path,
        identity: Identity,
        rows: &Rows,
        is_snapshot_usable: bool,
    ) -> Result<Self> {
        let loaded =
            if is_snapshot_usable { index::load(folder, identity.ids, identity.epoch)? } else { None };
        Ok(match loaded {
            Some((index, position)) => Self { index, applied: position, snapshotted: Some(position) },
            None => Self {
                index: rebuild(rows)?,
                applied: rows.applied_at_open[Tree::Pairs as usize],
                snapshotted: None,
            },
        })
    }
}

/// An index of the edges that the trees have.
fn rebuild(rows: &Rows) -> Result<Index> {
    let index = Index::new(rows.ids);
    for kind in EdgeKind::ALL {
        let mut follower = None;
        let mut followees = Vec::new();
        for row in rows.scan(Tree::Pairs, kind) {
            let (edge, _) = row?;
            if follower != Some(edge.follower) {
                if let Some(follower) = follower.replace(edge.follower) {
                    index.of(kind).extend(follower, &followees);
                }
                followees.clear();
            }
            followees.push(edge.followee);
        }
        if let Some(follower) = follower {
            index.of(kind).extend(follower, &followees);
        }
    }
    Ok(index)
}

/// The index, and what is cached by its numbers.
pub(crate) struct EdgeIndex {
    pub edges: Arc<Edges>,
    pub folder: StoreFolder,
    pub epoch: Epoch,
    /// Up to where it had the log when it was opened.
    pub applied: Sequence,
    /// Everything up to here is in the snapshot.
    pub snapshotted: AtomicU64,
}

impl Projection for EdgeIndex {
    fn content(&self) -> Content {
        Content::Edges
    }

    fn applied(&self) -> Result<Sequence> {
        Ok(self.applied)
    }

    /// An import says nothing of single edges here: it is loaded into rows and index together.
    fn apply(&self, events: &[Event]) -> Result<()> {
        let Edges { index, recent_followees, .. } = &*self.edges;
        for event in events.iter().filter(|event| event.position > self.applied) {
            let follower = match event.body {
                EventBody::Followed(edge) => {
                    index.of(event.kind).insert(edge);
                    edge.follower
                }
                EventBody::Unfollowed(edge, _) => {
                    index.of(event.kind).remove(edge);
                    edge.follower
                }
                EventBody::Imported { .. } => {
                    recent_followees.all_changed();
                    continue;
                }
                EventBody::Posted(_) | EventBody::PostDeleted { .. } | EventBody::Comment(_) => continue,
            };
            if event.kind == EdgeKind::Follow {
                recent_followees.changed(follower);
            }
        }
        Ok(())
    }

    fn snapshotted(&self) -> Option<Sequence> {
        Some(Sequence(self.snapshotted.load(Ordering::Acquire)))
    }

    fn snapshot(&self, position: Sequence) -> Result<()> {
        self.folder.require()?;
        index::save(&self.edges.index, self.folder.path(), self.epoch, position)?;
        self.snapshotted.fetch_max(position.0, Ordering::AcqRel);
        Ok(())
    }
}
