//! Overlaps: the common followees of users, and a viewer's followees that follow a given user.

use super::{EdgeStore, Graph, OVERLAP_WALK_MAX, Overlap, Side, UserSet};
use crate::context::require_at_most;
use crate::{EdgeKind, Error, Frontier, Id, OverlapCursor, Page, PageRequest, Result};

/// A page of an intersection of sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlapPage {
    /// The size of the intersection.
    pub count: u64,
    /// The members on this page, by id.
    pub items: Vec<Id>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<String>,
}

impl<S: EdgeStore> Graph<S> {
    /// A page of the common followees of `of`, by id. For one user, these are all its followees.
    pub async fn common(
        &self,
        kind: EdgeKind,
        of: &[Id],
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<OverlapPage> {
        let sets: Vec<UserSet> = of.iter().map(|&of| UserSet { side: Side::Following, of }).collect();
        self.overlap_page(kind, &sets, page, at_least).await
    }

    /// A page of the followees of `viewer` that follow `of`.
    pub async fn known_followers(
        &self,
        kind: EdgeKind,
        viewer: Id,
        of: Id,
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<OverlapPage> {
        let sets = [UserSet { side: Side::Following, of: viewer }, UserSet { side: Side::Followers, of }];
        self.overlap_page(kind, &sets, page, at_least).await
    }

    /// The size of an intersection, and up to `limit` members by id after `after`, for callers without cursors or with cursors
    /// of their own.
    pub async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.require_sets(sets)?;
        self.store().overlap(kind, sets, after, limit, at_least).await
    }

    /// The estimated number of rows that an overlap reads: the smallest set, compared with each of the others. Rate limits
    /// charge for it.
    pub async fn overlap_rows(&self, kind: EdgeKind, sets: &[UserSet], at_least: &Frontier) -> Result<usize> {
        self.require_sets(sets)?;
        let users: Vec<Id> = sets.iter().map(|set| set.of).collect();
        let counts = self.counts(kind, &users, at_least).await?;
        let sizes = sets.iter().zip(counts).map(|(set, counts)| counts.on(set.side));
        let smallest = sizes.min().unwrap_or_default().min(OVERLAP_WALK_MAX as u64);
        Ok(smallest as usize * sets.len())
    }

    async fn overlap_page(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<OverlapPage> {
        self.require_sets(sets)?;
        self.context.require_limit(page.limit)?;
        let cursor = OverlapCursor { kind, sets };
        let after = page.cursor.map(|text| cursor.decode(text, &self.context.keys)).transpose()?;
        let Overlap { count, ids } = self.overlap(kind, sets, after, page.wanted(), at_least).await?;
        let Page { items, next } = page.page(ids, |&last| cursor.encode(last, &self.context.keys));
        Ok(OverlapPage { count, items, next })
    }

    fn require_sets(&self, sets: &[UserSet]) -> Result<()> {
        if sets.is_empty() {
            return Err(Error::InvalidRequest { detail: "name at least one user".into() });
        }
        require_at_most("sets", sets.len(), self.settings.sets_max)?;
        sets.iter().try_for_each(|set| self.context.require_ids(&[set.of]))
    }
}
