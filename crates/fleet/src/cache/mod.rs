//! The cache: whole following sets in Redis, so that a check of a user that is read often costs its shard nothing.
//!
//! A set answers for every edge of its follower, or not at all: a set that lacks one member would deny an edge that exists. So each set
//! has a *mark* with its size and the position that it was read at, and all sets of a *tag* share a *watermark*: up to there, every
//! change of the shard was applied to the sets that are there.
//!
//! | key | what it holds |
//! |---|---|
//! | `{TAG}:watermark` | a hash: `generation`, a random name, and `sequence` |
//! | `{TAG}:set:KIND:ID` | the users that ID follows, as a set: decimal ids, or the 16 bytes of UUIDs. Missing if there are none |
//! | `{TAG}:mark:KIND:ID` | `GENERATION SEQUENCE SIZE` of that set. With another generation than the watermark's, it does not count |
//!
//! A tag is `DEPLOYMENT.EPOCH.SHARD.PART`, in one slot. Scripts change its keys, each as a whole:
//!
//! - *fill* stores a set that was read from the shard at a position, unless the watermark has passed it. Without a watermark it makes one
//!   of a new generation, so that no older set counts.
//! - *apply* takes the changes from one position to another, if the watermark is between them, and moves it.
//! - *check* answers with the position that the answer shows. A set that is not as large as its mark says is removed.
//! - *forget* removes a watermark that nobody can bring forward any more.
//! - *report* is apart from these: it keeps what processes say of their checks, for operators.
//!
//! Redis may lose the newest commands, forget everything, evict single keys and let several masters answer: each of these leaves a state
//! that says how far it goes, or none.

mod feed;
mod fills;
mod keys;
mod layer;
mod reports;
pub(crate) mod scripts;
mod snapshot;
mod state;

pub use feed::CacheFeed;
pub use fills::FillOutcome;
pub(crate) use fills::fill;
pub(crate) use layer::CacheLayer;
pub use layer::CacheVerdict;
pub use reports::CheckReport;
pub(crate) use reports::report;
pub use snapshot::Warmed;
pub use state::CacheState;

use std::sync::Arc;

use kinfolk_core::Result;
use tokio::runtime::Handle;

use self::fills::Fills;
use self::layer::CacheCounts;
use self::state::FeedState;
use crate::redis::{Cluster, Redis};

/// The cache as a process knows it.
pub(crate) struct Cache {
    cluster: Arc<Cluster>,
    settings: Redis,
    fills: Fills,
    counts: CacheCounts,
    /// What the feed of this process has found, if it feeds.
    feed: FeedState,
}

impl Cache {
    /// A cache whose nodes are looked for from now on.
    pub(crate) fn open(settings: &Redis, runtime: &Handle) -> Result<Self> {
        Ok(Self {
            cluster: Cluster::start(settings, scripts::SCRIPTS, runtime)?,
            settings: settings.clone(),
            fills: Fills::new(),
            counts: CacheCounts::default(),
            feed: FeedState::default(),
        })
    }

    /// The nodes, which hold more than the cache.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}
