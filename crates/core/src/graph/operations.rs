//! The operations on edges: the rules that hold for every store and every protocol.

use super::{
    CheckStore, Counts, Edge, EdgeAction, EdgeList, EdgeStore, FollowerCommand, FollowerCommands, ListEntry,
    ListKey, Receipt, Relationship, Side, WriteRequest,
};
use crate::context::require_at_most;
use crate::{
    EdgeKind, Error, Frontier, Id, ListCursor, ListName, Operations, Page, PageRequest, Result, Timestamp,
};

/// Limits of the graph that a deployment sets.
#[derive(Clone, Copy, Debug)]
pub struct GraphSettings {
    /// The maximum number of followees of a user.
    pub following_limit: u32,
    /// The maximum number of pairs in one check.
    pub check_pairs_max: usize,
    /// The maximum number of users in one call for counts or relationships.
    pub users_max: usize,
    /// The maximum number of commands in one write.
    pub commands_max: usize,
    /// The maximum number of sets in one overlap.
    pub sets_max: usize,
}

impl Default for GraphSettings {
    fn default() -> Self {
        Self {
            following_limit: 10_000,
            check_pairs_max: 1_000,
            users_max: 100,
            commands_max: 10_000,
            sets_max: 10,
        }
    }
}

/// A page of a list of users.
pub type ListPage = Page<ListEntry>;

/// Commands of one follower that are applied atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerChanges {
    /// The follower.
    pub follower: Id,
    /// The commands, in order.
    pub commands: FollowerCommands,
}

/// Operations on edges.
pub type Graph<S> = Operations<S, GraphSettings>;

impl<S: EdgeStore> Graph<S> {
    /// Makes `actor` follow `target`.
    pub async fn follow(&self, kind: EdgeKind, actor: Id, target: Id) -> Result<Receipt> {
        self.change(kind, actor, FollowerCommand { action: EdgeAction::Follow, followee: target }).await
    }

    /// Makes `actor` unfollow `target`.
    pub async fn unfollow(&self, kind: EdgeKind, actor: Id, target: Id) -> Result<Receipt> {
        self.change(kind, actor, FollowerCommand { action: EdgeAction::Unfollow, followee: target }).await
    }

    /// Removes `follower` from the followers of `actor`.
    pub async fn remove_follower(&self, kind: EdgeKind, actor: Id, follower: Id) -> Result<Receipt> {
        self.unfollow(kind, follower, actor).await
    }

    async fn change(&self, kind: EdgeKind, follower: Id, command: FollowerCommand) -> Result<Receipt> {
        self.apply(kind, vec![FollowerChanges { follower, commands: [command].into() }])
            .await
            .pop()
            .unwrap_or(Err(Error::Closed))
    }

    /// Applies the changes of each follower atomically and returns one result for each, in order. Consecutive changes of one
    /// follower become durable together.
    pub async fn apply(&self, kind: EdgeKind, changes: Vec<FollowerChanges>) -> Vec<Result<Receipt>> {
        let following_limit = self.settings.following_limit;
        let mut refusals = Vec::with_capacity(changes.len());
        let mut requests = Vec::with_capacity(changes.len());
        for change in changes {
            let refusal = self.require_valid(&change).err();
            if refusal.is_none() {
                let FollowerChanges { follower, commands } = change;
                requests.push(WriteRequest { kind, follower, commands, following_limit });
            }
            refusals.push(refusal);
        }
        let receipts = if requests.is_empty() { Vec::new() } else { self.store().write(requests).await };
        let mut receipts = receipts.into_iter();
        let outcome = |refusal: Option<Error>| match refusal {
            Some(error) => Err(error),
            None => receipts.next().expect("a store returns a result for every request"),
        };
        refusals.into_iter().map(outcome).collect()
    }

    /// Refuses changes that no store is asked for: too many, of ids of the wrong kind, or of a user that follows itself.
    pub fn require_valid(&self, change: &FollowerChanges) -> Result<()> {
        require_at_most("commands", change.commands.len(), self.settings.commands_max)?;
        self.context.require_ids(&[change.follower])?;
        for command in &change.commands {
            self.context.require_ids(&[command.followee])?;
            if change.follower == command.followee && command.action == EdgeAction::Follow {
                return Err(Error::SelfFollow);
            }
        }
        Ok(())
    }

    /// A page of a user's followees.
    pub async fn following(
        &self,
        kind: EdgeKind,
        of: Id,
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<ListPage> {
        self.list(ListCursor { list: ListName::Following, kind, of }, page, at_least).await
    }

    /// A page of a user's followers.
    pub async fn followers(
        &self,
        kind: EdgeKind,
        of: Id,
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<ListPage> {
        self.list(ListCursor { list: ListName::Followers, kind, of }, page, at_least).await
    }

    /// A page of a user's mutual followers, by when they followed the user.
    pub async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<ListPage> {
        self.list(ListCursor { list: ListName::Friends, kind, of }, page, at_least).await
    }

    /// Up to `limit` entries of a user's list after a key, for callers that have cursors of their own.
    pub async fn walk(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.context.require_ids(&[list.of])?;
        self.context.require_limit(limit)?;
        self.store().list(list, after, limit, at_least).await
    }

    /// The number of followees and followers of each user.
    pub async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        require_at_most("ids", of.len(), self.settings.users_max)?;
        self.context.require_ids(of)?;
        self.store().counts(kind, of, at_least).await
    }

    async fn list(&self, list: ListCursor, page: PageRequest<'_>, at_least: &Frontier) -> Result<ListPage> {
        self.context.require_ids(&[list.of])?;
        self.context.require_limit(page.limit)?;
        let keys = &self.context.keys;
        let after = page.cursor.map(|text| list.decode(text, keys)).transpose()?;
        let ListCursor { list: name, kind, of } = list;
        let wanted = page.wanted();
        let side = match name {
            ListName::Following => Some(Side::Following),
            ListName::Followers => Some(Side::Followers),
            ListName::Friends => None,
            ListName::Posts | ListName::Feed => unreachable!("lists of posts have pages of their own"),
        };
        let items = match side {
            Some(side) => self.store().list(EdgeList { kind, side, of }, after, wanted, at_least).await?,
            None => self.store().friends(kind, of, after, wanted, at_least).await?,
        };
        Ok(page.page(items, |&last| list.encode(last, keys)))
    }
}

impl<S: CheckStore> Graph<S> {
    /// Whether each edge exists.
    pub async fn check(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        require_at_most("pairs", edges.len(), self.settings.check_pairs_max)?;
        for edge in edges {
            self.context.require_ids(&[edge.follower, edge.followee])?;
        }
        self.store().contains(kind, edges, at_least).await
    }

    /// For each edge, whether it exists, or `None` where the store can't respond without waiting; appended to `found`.
    pub fn check_each_now(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
        found: &mut Vec<Option<bool>>,
    ) -> Result<()> {
        edges.iter().try_for_each(|edge| self.context.require_ids(&[edge.follower, edge.followee]))?;
        self.store().contains_each_now(kind, edges, at_least, found);
        Ok(())
    }
}

impl<S: CheckStore + EdgeStore> Graph<S> {
    /// Since when an edge exists, if it does.
    pub async fn since(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Result<Option<Timestamp>> {
        self.context.require_ids(&[edge.follower, edge.followee])?;
        let found = self.store().since(kind, &[edge], at_least).await?;
        Ok(found.first().copied().flatten())
    }

    /// The relationship of `of` to each of the others, in their order.
    pub async fn relationships(
        &self,
        kind: EdgeKind,
        of: Id,
        others: &[Id],
        at_least: &Frontier,
    ) -> Result<Vec<Relationship>> {
        require_at_most("ids", others.len(), self.settings.users_max)?;
        self.context.require_ids(&[of])?;
        self.context.require_ids(others)?;
        let outgoing: Vec<Edge> = others.iter().map(|&id| Edge { follower: of, followee: id }).collect();
        let incoming: Vec<Edge> = others.iter().map(|&id| Edge { follower: id, followee: of }).collect();
        let since = self.store().since(kind, &outgoing, at_least).await?;
        let followed_by = self.store().contains(kind, &incoming, at_least).await?;
        assert!(
            since.len() == others.len() && followed_by.len() == others.len(),
            "a store returns a result for every edge"
        );
        let joined = others.iter().zip(since).zip(followed_by);
        Ok(joined.map(|((&id, since), followed_by)| Relationship { id, since, followed_by }).collect())
    }
}
