//! The store behind the servers of these tests: the reference store. The tests of the graph also run on another one, which has
//! this module, too.

use std::sync::Arc;

use kinfolk_conformance::{ModelStore, SimulatedClock};
use kinfolk_core::IdKind;

pub(crate) type Backing = ModelStore;

/// Whether it has posts, feeds and comments.
pub(crate) const HAS_CONTENT: bool = true;

/// Whether its reads show a position of any shard: otherwise reads of one user show those of its shard.
pub(crate) const READS_SHOW_EVERYTHING: bool = true;

/// An empty store.
pub(crate) fn open(kind: IdKind, clock: Arc<SimulatedClock>) -> Backing {
    ModelStore::new(kind, clock)
}
