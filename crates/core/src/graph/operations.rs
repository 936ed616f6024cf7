//! The operations on the graph: the rules that hold whatever store is below and whatever protocol is above.

use super::{
    Change, ChangeLog, Counts, Edge, EdgeAction, EdgeCommand, EdgeStore, ListEntry, ListKey, Relationship,
    Side, WriteRequest,
};
use crate::feed::FeedSettings;
use crate::suggest::SuggestSettings;
use crate::thread::ThreadSettings;
use crate::{EdgeKind, Error, Id, IdKind, Keyring, ListCursor, ListName, Position, Result, Token};

/// The limits that a deployment sets.
#[derive(Clone, Copy, Debug)]
pub struct GraphSettings {
    /// How many one user may follow.
    pub following_limit: u32,
    /// The largest page.
    pub page_limit_max: usize,
    /// The most pairs in one check.
    pub check_pairs_max: usize,
    /// The most users in one call for counts or relationships.
    pub users_max: usize,
    /// The most commands in one write.
    pub commands_max: usize,
    /// The most sets whose overlap is asked for.
    pub sets_max: usize,
    /// What is suggested to users.
    pub suggest: SuggestSettings,
    /// What may be posted.
    pub feed: FeedSettings,
    /// What may be written in comments.
    pub thread: ThreadSettings,
}

impl Default for GraphSettings {
    fn default() -> Self {
        Self {
            following_limit: 10_000,
            page_limit_max: 1_000,
            check_pairs_max: 1_000,
            users_max: 100,
            commands_max: 10_000,
            sets_max: 10,
            suggest: SuggestSettings::default(),
            feed: FeedSettings::default(),
            thread: ThreadSettings::default(),
        }
    }
}

/// How fresh a read must be: as it comes, or at least as fresh as a token says.
pub type Freshness<'a> = Option<&'a str>;

/// Which page of a list.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// How many entries.
    pub limit: usize,
    /// Where to go on: the `next` of the page before.
    pub cursor: Option<&'a str>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// The entries.
    pub items: Vec<ListEntry>,
    /// The cursor of the next page, unless the list ends here.
    pub next: Option<String>,
}

/// A page of the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesPage {
    /// The changes, oldest first.
    pub items: Vec<Change>,
    /// The token to ask with for what comes after them.
    pub next: String,
}

/// The answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The token of the position at which the write is visible.
    pub token: String,
    /// For each command, whether it changed anything.
    pub changed: Vec<bool>,
}

/// The graph: a store, with the rules in front of it.
#[derive(Debug)]
pub struct Graph<S> {
    store: S,
    pub(crate) keys: Keyring,
    pub(crate) settings: GraphSettings,
}

impl<S: EdgeStore + ChangeLog> Graph<S> {
    /// A graph on a store, with the keys that sign its tokens and cursors.
    pub fn new(store: S, keys: Keyring, settings: GraphSettings) -> Self {
        Self { store, keys, settings }
    }

    /// The store below.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The kind of ids that this deployment uses.
    pub fn id_kind(&self) -> IdKind {
        self.store.id_kind()
    }

    /// `actor` follows `target`.
    pub async fn follow(&self, kind: EdgeKind, actor: Id, target: Id) -> Result<Written> {
        let edge = Edge { follower: actor, followee: target };
        self.apply(kind, vec![EdgeCommand { action: EdgeAction::Follow, edge }]).await
    }

    /// `actor` does not follow `target` any more.
    pub async fn unfollow(&self, kind: EdgeKind, actor: Id, target: Id) -> Result<Written> {
        let edge = Edge { follower: actor, followee: target };
        self.apply(kind, vec![EdgeCommand { action: EdgeAction::Unfollow, edge }]).await
    }

    /// `actor` makes `follower` not follow it any more.
    pub async fn remove_follower(&self, kind: EdgeKind, actor: Id, follower: Id) -> Result<Written> {
        self.unfollow(kind, follower, actor).await
    }

    /// Applies commands together or not at all.
    pub async fn apply(&self, kind: EdgeKind, commands: Vec<EdgeCommand>) -> Result<Written> {
        self.require_at_most("commands", commands.len(), self.settings.commands_max)?;
        for command in &commands {
            let Edge { follower, followee } = command.edge;
            self.require_ids(&[follower, followee])?;
            if follower == followee && command.action == EdgeAction::Follow {
                return Err(Error::SelfFollow);
            }
        }
        let following_limit = self.settings.following_limit;
        let receipt = self.store.write(WriteRequest { kind, commands, following_limit }).await?;
        Ok(Written { token: self.token(receipt.position), changed: receipt.changed })
    }

    /// Whether each edge exists.
    pub async fn check(&self, kind: EdgeKind, edges: &[Edge], fresh: Freshness<'_>) -> Result<Vec<bool>> {
        self.require_at_most("pairs", edges.len(), self.settings.check_pairs_max)?;
        for edge in edges {
            self.require_ids(&[edge.follower, edge.followee])?;
        }
        self.await_freshness(fresh).await?;
        self.store.contains(kind, edges).await
    }

    /// Whether one edge exists: [`Graph::check`] for the most frequent question.
    pub async fn check_one(&self, kind: EdgeKind, edge: Edge, fresh: Freshness<'_>) -> Result<bool> {
        self.require_ids(&[edge.follower, edge.followee])?;
        self.await_freshness(fresh).await?;
        self.store.contains_one(kind, edge).await
    }

    /// How `of` stands to each of the others, in the order asked.
    pub async fn relationships(
        &self,
        kind: EdgeKind,
        of: Id,
        others: &[Id],
        fresh: Freshness<'_>,
    ) -> Result<Vec<Relationship>> {
        self.require_at_most("ids", others.len(), self.settings.users_max)?;
        self.require_ids(&[of])?;
        self.require_ids(others)?;
        self.await_freshness(fresh).await?;
        let outgoing: Vec<Edge> = others.iter().map(|&id| Edge { follower: of, followee: id }).collect();
        let incoming: Vec<Edge> = others.iter().map(|&id| Edge { follower: id, followee: of }).collect();
        let since = self.store.since(kind, &outgoing).await?;
        let followed_by = self.store.contains(kind, &incoming).await?;
        assert!(
            since.len() == others.len() && followed_by.len() == others.len(),
            "a store answers every edge"
        );
        let joined = others.iter().zip(since).zip(followed_by);
        Ok(joined.map(|((&id, since), followed_by)| Relationship { id, since, followed_by }).collect())
    }

    /// A page of whom `of` follows.
    pub async fn following(
        &self,
        kind: EdgeKind,
        of: Id,
        page: PageRequest<'_>,
        fresh: Freshness<'_>,
    ) -> Result<ListPage> {
        self.list(ListCursor { list: ListName::Following, kind, of }, page, fresh).await
    }

    /// A page of who follows `of`.
    pub async fn followers(
        &self,
        kind: EdgeKind,
        of: Id,
        page: PageRequest<'_>,
        fresh: Freshness<'_>,
    ) -> Result<ListPage> {
        self.list(ListCursor { list: ListName::Followers, kind, of }, page, fresh).await
    }

    /// A page of who follows `of` and is followed back, by when they followed `of`.
    pub async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        page: PageRequest<'_>,
        fresh: Freshness<'_>,
    ) -> Result<ListPage> {
        self.list(ListCursor { list: ListName::Friends, kind, of }, page, fresh).await
    }

    /// Up to `limit` entries of a user's list after a place in it, for callers that walk it by themselves or have
    /// cursors of their own.
    pub async fn walk(
        &self,
        kind: EdgeKind,
        list: (Side, Id),
        after: Option<ListKey>,
        limit: usize,
        fresh: Freshness<'_>,
    ) -> Result<Vec<ListEntry>> {
        let (side, of) = list;
        self.require_ids(&[of])?;
        self.require_limit(limit)?;
        self.await_freshness(fresh).await?;
        self.store.list(kind, side, of, after, limit).await
    }

    /// How many edges each user has on each side.
    pub async fn counts(&self, kind: EdgeKind, of: &[Id], fresh: Freshness<'_>) -> Result<Vec<Counts>> {
        self.require_at_most("ids", of.len(), self.settings.users_max)?;
        self.require_ids(of)?;
        self.await_freshness(fresh).await?;
        self.store.counts(kind, of).await
    }

    /// Changes after a token, or from the oldest kept.
    pub async fn changes(&self, after: Option<&str>, limit: usize) -> Result<ChangesPage> {
        self.require_limit(limit)?;
        let span = self.store.span();
        let after = match after {
            None => span.trimmed,
            Some(text) => {
                let asked = Token::decode(text, &self.keys)?.position_in(span.epoch)?;
                self.store.visible(asked).await?;
                asked
            }
        };
        let items = self.store.changes(after, limit).await?;
        let next = self.token(items.last().map_or(after, |change| change.position));
        Ok(ChangesPage { items, next })
    }

    /// The token of a position.
    pub fn token(&self, position: Position) -> String {
        Token { epoch: self.store.epoch(), position }.encode(&self.keys)
    }

    async fn list(&self, list: ListCursor, page: PageRequest<'_>, fresh: Freshness<'_>) -> Result<ListPage> {
        self.require_ids(&[list.of])?;
        self.require_limit(page.limit)?;
        let after = page.cursor.map(|text| list.decode(text, &self.keys)).transpose()?;
        self.await_freshness(fresh).await?;
        // One more than asked tells whether there is a next page, so that a full last page has no false `next`.
        let wanted = page.limit + 1;
        let mut items = match list.list {
            ListName::Following => {
                self.store.list(list.kind, Side::Following, list.of, after, wanted).await?
            }
            ListName::Followers => {
                self.store.list(list.kind, Side::Followers, list.of, after, wanted).await?
            }
            ListName::Friends => self.store.friends(list.kind, list.of, after, wanted).await?,
            ListName::Posts | ListName::Feed => unreachable!("lists of posts have pages of their own"),
        };
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        let next = items.last().filter(|_| more).map(|&last| list.encode(last, &self.keys));
        Ok(ListPage { items, next })
    }

    pub(crate) async fn await_freshness(&self, fresh: Freshness<'_>) -> Result<()> {
        let Some(text) = fresh else { return Ok(()) };
        let asked = Token::decode(text, &self.keys)?.position_in(self.store.epoch())?;
        self.store.visible(asked).await
    }

    pub(crate) fn require_ids(&self, ids: &[Id]) -> Result<()> {
        let kind = self.store.id_kind();
        ids.iter().try_for_each(|&id| kind.require(id))
    }

    pub(crate) fn require_limit(&self, given: usize) -> Result<()> {
        let max = self.settings.page_limit_max;
        if (1..=max).contains(&given) { Ok(()) } else { Err(Error::LimitOutOfRange { given, max }) }
    }

    pub(crate) fn require_at_most(&self, what: &'static str, given: usize, max: usize) -> Result<()> {
        if given <= max { Ok(()) } else { Err(Error::TooMany { what, given, max }) }
    }
}
