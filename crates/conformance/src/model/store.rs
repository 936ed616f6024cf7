//! The reference model behind the ports: a store in memory, right by construction unless a fault is planted.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use kinfolk_core::changes::{Change, ChangeLog, LogPage, LogSpan};
use kinfolk_core::feeds::{
    FeedStore, Inbox, InboxStore, NewPost, Post, PostKey, PostState, PostStore, PostWritten, WriteOutcome,
};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::suggestions::{
    StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use kinfolk_core::{
    Clock, Deployment, EdgeKind, Epoch, Error, Frontier, Id, IdKind, Position, Result, Sequence, Shard,
    Store, Timestamp,
};

use crate::faults::{Fault, Planted};
use crate::model::Model;
use crate::model::placement::Placement;
use crate::model::posts::RequestState;
use crate::model::suggestions::{Everyone, Kept, locked};
use crate::users::START;

/// How long a read waits here for what it must show. Real stores wait a second; the model's tests have no time for it.
const VISIBLE_WAIT_MAX: Duration = Duration::from_millis(20);

/// A [`Model`] as a store, which has posts pulled from [`crate::FAN_OUT_THRESHOLD`] followers on. Its calls block for a moment, which only tests may do.
pub struct ModelStore {
    id_kind: IdKind,
    pub(crate) placement: Placement,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) model: Mutex<Model>,
    request_state: Mutex<RequestState>,
    kept: Mutex<Kept>,
    /// Who has an inbox, and at which position it was made.
    inboxes: Mutex<BTreeMap<Id, Position>>,
    pub(crate) written: Condvar,
    pub(crate) planted: Option<Planted>,
}

impl ModelStore {
    /// An empty store without a fault.
    pub fn new(id_kind: IdKind, clock: Arc<dyn Clock>) -> Self {
        Self {
            id_kind,
            placement: Placement::ONE_SHARD,
            clock,
            model: Mutex::default(),
            request_state: Mutex::default(),
            kept: Mutex::default(),
            inboxes: Mutex::default(),
            written: Condvar::new(),
            planted: None,
        }
    }

    /// An empty store that makes one mistake.
    pub fn with_fault(id_kind: IdKind, clock: Arc<dyn Clock>, fault: Fault) -> Self {
        Self { planted: Some(Planted::new(fault)), ..Self::new(id_kind, clock) }
    }

    /// The store with its log spread over so many shards.
    ///
    /// # Panics
    /// Without a shard.
    #[must_use]
    pub fn on_shards(self, shards: u16) -> Self {
        let shards = NonZeroU16::new(shards).expect("a deployment has a shard");
        Self { placement: Placement { shards }, ..self }
    }

    /// The store after a restart: everything is rebuilt from the change log, but for what that does not tell: suggestions
    /// that were stored, idempotency keys, which ids were made, and why comments were removed.
    #[must_use]
    pub fn reopen(self) -> Self {
        let old = self.model.into_inner().expect("no call panicked inside the model");
        let mut model = Model::replay(old.changes);
        model.threads.unlogged = old.threads.unlogged;
        let mut kept = self.kept.into_inner().expect("no call panicked inside the model");
        let mut request_state = self.request_state.into_inner().expect("no call panicked inside the model");
        let planted = self.planted.map(|planted| planted.reopen(&mut model, &mut kept, &mut request_state));
        Self {
            model: Mutex::new(model),
            request_state: Mutex::new(request_state),
            kept: Mutex::new(kept),
            inboxes: self.inboxes,
            planted,
            placement: self.placement,
            ..Self::new(self.id_kind, self.clock)
        }
    }

    /// The newest position of every shard.
    fn newest(&self, model: &Model) -> Frontier {
        self.placement.frontier(model, model.position())
    }

    /// Where the log of a shard is when the model's is at a position.
    pub(crate) fn placed(&self, position: Position, shard: Shard) -> Position {
        self.placement.position(&self.model(), position, shard)
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        locked(&self.model)
    }

    /// Waits until everything is visible that a reader has seen.
    pub(crate) fn reach(&self, at_least: &Frontier) -> Result<()> {
        if at_least.is_empty() || self.planted.as_ref().is_some_and(Planted::sees_the_future) {
            return Ok(());
        }
        let is_early = |model: &mut Model| !self.newest(model).covers_all(at_least);
        let waited = self.written.wait_timeout_while(self.model(), VISIBLE_WAIT_MAX, is_early);
        let (model, _) = waited.expect("no call panics inside the model");
        let newest = self.newest(&model);
        match at_least.iter().find(|&asked| !newest.covers(asked)) {
            None => Ok(()),
            Some(asked) => {
                let current = newest.get(asked.shard).unwrap_or_default().on(asked.shard);
                Err(Error::NotYetVisible { asked, current })
            }
        }
    }

    /// As [`ModelStore::reach`], for a read that one fault makes too early.
    fn reach_unless(&self, fault: Fault, at_least: &Frontier) -> Result<()> {
        if self.planted.as_ref().is_some_and(|planted| planted.makes(fault)) {
            return Ok(());
        }
        self.reach(at_least)
    }
}

impl Deployment for ModelStore {
    fn id_kind(&self) -> IdKind {
        self.id_kind
    }

    fn epoch(&self) -> Epoch {
        let changes = self.planted.as_ref().is_some_and(Planted::changes_epoch);
        if changes { Epoch(self.model().position().sequence.0) } else { Epoch(1) }
    }
}

impl Store for ModelStore {
    type Suggestions = Self;
    type Content = Self;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }
}

impl CheckStore for ModelStore {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        self.reach(at_least)?;
        if let Some(planted) = &self.planted {
            return planted.contains(&self.model, kind, edges);
        }
        let model = self.model();
        Ok(edges.iter().map(|&edge| model.contains(kind, edge)).collect())
    }
}

impl EdgeStore for ModelStore {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let followers: Vec<Id> = requests.iter().map(|request| request.follower).collect();
        let results: Vec<Result<Receipt>> = match &self.planted {
            None => self.model().write_all(&requests, self.clock.now()),
            Some(planted) => {
                let write = |request| planted.write(&self.model, request, &*self.clock);
                requests.into_iter().map(write).collect()
            }
        };
        self.written.notify_all();
        let place = |(result, follower): (Result<Receipt>, Id)| {
            let Receipt { position, changed } = result?;
            Ok(Receipt { position: self.placed(position, self.placement.of(follower)), changed })
        };
        results.into_iter().zip(followers).map(place).collect()
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        self.reach(at_least)?;
        if let Some(planted) = &self.planted {
            return planted.since(&self.model(), kind, edges);
        }
        let model = self.model();
        Ok(edges.iter().map(|&edge| model.since(kind, edge)).collect())
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.reach(at_least)?;
        let EdgeList { kind, side, of } = list;
        match &self.planted {
            None => Ok(self.model().list(kind, side, of, after, limit)),
            Some(planted) => planted.list(&self.model(), kind, side, of, (after, limit)),
        }
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.reach(at_least)?;
        match &self.planted {
            None => Ok(self.model().friends(kind, of, after, limit)),
            Some(planted) => planted.friends(&self.model(), kind, of, (after, limit)),
        }
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.reach(at_least)?;
        match &self.planted {
            None => Ok(self.model().overlap(kind, sets, after, limit)),
            Some(planted) => planted.overlap(&self.model(), kind, sets, (after, limit)),
        }
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.reach(at_least)?;
        if let Some(planted) = &self.planted {
            return planted.counts(&self.model(), kind, of);
        }
        let model = self.model();
        Ok(of.iter().map(|&id| model.counts(kind, id)).collect())
    }
}

impl SuggestionStore for ModelStore {
    async fn candidates(&self, of: Id, bounds: WalkBounds, at_least: &Frontier) -> Result<Vec<Suggestion>> {
        self.reach_unless(Fault::FreshnessIgnoredByCandidates, at_least)?;
        match &self.planted {
            None => Ok(self.model().candidates(of, bounds)),
            Some(planted) => Ok(planted.candidates(&self.model(), of, bounds)),
        }
    }

    async fn stored_suggestions(
        &self,
        of: Id,
        max_age: Duration,
        at_least: &Frontier,
    ) -> Result<Option<StoredSuggestions>> {
        self.reach_unless(Fault::FreshnessIgnoredByStored, at_least)?;
        let (kept, now) = (locked(&self.kept), self.clock.now());
        match &self.planted {
            None => Ok(kept.stored(of, max_age, now)),
            Some(planted) => Ok(planted.stored(&kept, of, max_age, now)),
        }
    }

    async fn store_suggestions(&self, computed: Vec<(Id, StoredSuggestions)>) -> Result<()> {
        let mut kept = locked(&self.kept);
        match &self.planted {
            None => {
                computed.into_iter().for_each(|(of, found)| kept.replace(of, found.computed_at, found.items));
            }
            Some(planted) => planted.store_suggestions(&mut kept, computed),
        }
        Ok(())
    }

    fn compute_suggestions(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport> {
        let everyone = Everyone { model: &self.model, kept: &self.kept, clock: &*self.clock };
        match &self.planted {
            None => Ok(everyone.run(request, watch)),
            Some(planted) => Ok(planted.everyone(&everyone, request, watch)),
        }
    }
}

impl PostStore for ModelStore {
    async fn register(&self, request: NewPost) -> Result<PostWritten> {
        let result = match &self.planted {
            None => {
                let (mut model, mut request_state, now) =
                    (self.model(), locked(&self.request_state), self.clock.now());
                let generated = request_state.generate_id(&model, self.id_kind, now);
                model.register(&mut request_state, &request, generated, now)
            }
            Some(planted) => {
                planted.register((&self.model, &self.request_state), &request, self.id_kind, &*self.clock)
            }
        };
        self.written.notify_all();
        let PostWritten { position, post, is_new } = result?;
        Ok(PostWritten { position: self.placed(position, self.placement.of(post.id)), post, is_new })
    }

    async fn delete_post(&self, id: Id) -> Result<WriteOutcome> {
        let result = match &self.planted {
            None => self.model().delete_post(id, self.clock.now()),
            Some(planted) => planted.delete_post(&mut self.model(), id, self.clock.now()),
        };
        self.written.notify_all();
        let WriteOutcome { position, changed } = result?;
        Ok(WriteOutcome { position: self.placed(position, self.placement.of(id)), changed })
    }

    async fn posts(&self, ids: &[Id], at_least: &Frontier) -> Result<Vec<Option<PostState>>> {
        self.reach(at_least)?;
        let model = self.model();
        match &self.planted {
            None => Ok(ids.iter().map(|&id| model.post(id)).collect()),
            Some(planted) => Ok(planted.posts(&model, ids)),
        }
    }

    async fn posts_by(
        &self,
        author: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.reach(at_least)?;
        match &self.planted {
            None => Ok(self.model().posts_by(author, after, limit)),
            Some(planted) => Ok(planted.posts_by(&self.model(), author, (after, limit))),
        }
    }
}

impl FeedStore for ModelStore {
    async fn feed(
        &self,
        of: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.reach(at_least)?;
        let model = self.model();
        if model.counts(EdgeKind::Follow, of).following > 0 {
            locked(&self.inboxes).entry(of).or_insert(model.position());
        }
        match &self.planted {
            None => Ok(model.feed(of, after, limit)),
            Some(planted) => Ok(planted.feed(&model, of, (after, limit))),
        }
    }
}

impl InboxStore for ModelStore {
    async fn inbox(&self, of: Id, at_least: &Frontier) -> Result<Option<Inbox>> {
        self.reach_unless(Fault::FreshnessIgnoredByInbox, at_least)?;
        let (model, made_at) = (self.model(), locked(&self.inboxes).get(&of).copied());
        let inbox = match &self.planted {
            None => made_at.map(|_| model.inbox(of)),
            Some(planted) => planted.inbox_of(&model, of, made_at),
        };
        let place = |as_of: &Frontier| {
            let position = as_of.get(Shard::ONLY).unwrap_or_default().on(Shard::ONLY);
            self.placement.frontier(&model, position)
        };
        Ok(inbox.map(|inbox| Inbox { as_of: place(&inbox.as_of), ..inbox }))
    }

    async fn drop_inbox(&self, of: Id) -> Result<()> {
        if self.planted.as_ref().is_none_or(|planted| planted.forgets(of)) {
            locked(&self.inboxes).remove(&of);
        }
        Ok(())
    }
}

impl ChangeLog for ModelStore {
    async fn span(&self) -> Result<LogSpan> {
        let (epoch, model) = (self.epoch(), self.model());
        Ok(LogSpan { epoch, trimmed: self.placement.frontier(&model, START), newest: self.newest(&model) })
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.reach(after)?;
        let model = self.model();
        let read = |after, limit| match &self.planted {
            None => model.changes(after, limit),
            Some(planted) => planted.changes(&model, after, limit),
        };
        let mut next = self.placement.frontier(&model, START);
        next.join(after);
        let changes: Vec<Change> = if self.placement.shards == NonZeroU16::MIN {
            read(after.get(Shard::ONLY).unwrap_or(Sequence::START).on(Shard::ONLY), limit)
        } else {
            let placed =
                read(START, usize::MAX).into_iter().map(|change| self.placement.place(&model, change));
            placed.filter(|change| !after.covers(change.position)).take(limit).collect()
        };
        changes.iter().for_each(|change| next.advance(change.position));
        Ok(LogPage { changes, next })
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        let is_early = |model: &mut Model| after.covers_all(&self.newest(model));
        let waited = self.written.wait_timeout_while(self.model(), VISIBLE_WAIT_MAX, is_early);
        let (model, _) = waited.expect("no call panics inside the model");
        Ok(!after.covers_all(&self.newest(&model)))
    }
}
