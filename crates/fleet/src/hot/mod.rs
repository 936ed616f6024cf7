//! Accounts that are read often: the first page of their followers and their counts are kept in this process for a moment, and
//! readers who come at the same time share one statement.
//!
//! A kept answer knows up to which position of each source it shows the log. A caller with a token gets it only if it covers the
//! token: that is how the log invalidates it. Every caller gets it only within the bound of staleness, as from the host itself, and
//! never one of another epoch or from where the shard was before. Redis is not asked: what is hot is hot in every process.

mod answers;
mod heat;
mod kept;
mod slot;
mod state;

use std::future::Future;
use std::hash::Hash;
use std::mem::size_of;
use std::sync::Arc;

use kinfolk_core::graph::{Counts, EdgeList, ListEntry, ListKey, Side};
use kinfolk_core::{EdgeKind, Id};

use crate::postgres::Failure;
use crate::read::{Page, Reader};
pub(crate) use answers::HotAnswers;
pub use state::{HotState, HotVerdict};

/// What is kept in a process.
pub(crate) struct Hot {
    pub(crate) first_pages: HotAnswers<FirstPage>,
    pub(crate) counts: HotAnswers<CountsOf>,
}

impl Hot {
    /// Nothing yet. Accounts that are read at least so often in a second are kept; none are without a number.
    pub(crate) fn new(reads: Option<u32>) -> Self {
        Self { first_pages: HotAnswers::new(reads), counts: HotAnswers::new(reads) }
    }
}

/// Something that is asked of an account.
pub(crate) trait Question: Copy + Eq + Hash + Send + Sync + 'static {
    type Answer: Clone + Send + Sync + 'static;

    /// The account.
    fn of(self) -> Id;

    /// The memory that an answer takes at most.
    fn bytes(self) -> usize;

    /// Asks the host.
    fn read(self, reader: Reader) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// The first page of an account's followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FirstPage {
    kind: EdgeKind,
    of: Id,
    limit: usize,
}

impl FirstPage {
    /// The question that a page of a list is, if it is one of these.
    pub(crate) fn of_list(list: EdgeList, after: Option<ListKey>, limit: usize) -> Option<Self> {
        let EdgeList { kind, side, of } = list;
        (side == Side::Followers && after.is_none()).then_some(Self { kind, of, limit })
    }
}

impl Question for FirstPage {
    type Answer = Arc<[ListEntry]>;

    fn of(self) -> Id {
        self.of
    }

    fn bytes(self) -> usize {
        self.limit.saturating_mul(size_of::<ListEntry>())
    }

    async fn read(self, reader: Reader) -> Result<Self::Answer, Failure> {
        let Self { kind, of, limit } = self;
        let list = EdgeList { kind, side: Side::Followers, of };
        Ok(reader.list(list, Page { after: None, limit }).await?.into())
    }
}

/// How many edges an account has on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CountsOf {
    pub(crate) kind: EdgeKind,
    pub(crate) of: Id,
}

impl Question for CountsOf {
    type Answer = Counts;

    fn of(self) -> Id {
        self.of
    }

    fn bytes(self) -> usize {
        size_of::<Counts>()
    }

    async fn read(self, reader: Reader) -> Result<Counts, Failure> {
        let counts = reader.counts(self.kind, &[self.of]).await?;
        counts.first().copied().ok_or(Failure::Moved)
    }
}
