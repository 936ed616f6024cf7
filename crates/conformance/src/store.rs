//! The reference model behind the ports: a store in memory, right by construction unless a fault is planted.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use kinfolk_core::feed::{
    FeedStore, Inbox, InboxStore, NewPost, Post, PostKey, PostState, PostStore, Posted, Removed,
};
use kinfolk_core::graph::{
    Change, ChangeLog, Counts, Edge, EdgeStore, ListEntry, ListKey, LogSpan, Overlap, Receipt, Side, UserSet,
    WriteRequest,
};
use kinfolk_core::suggest::{
    EveryoneReport, EveryoneRequest, StoredSuggestions, Suggestion, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Clock, EdgeKind, Epoch, Error, Id, IdKind, Position, Result, Timestamp};

use crate::model::Model;
use crate::planted::{Fault, Planted};
use crate::posts::Wishes;
use crate::suggestions::{Everyone, Kept, locked};

/// How long [`EdgeStore::visible`] waits here. Real stores wait a second; the model's tests have no time for it.
const VISIBLE_WAIT_MAX: Duration = Duration::from_millis(20);

/// A [`Model`] as a store, which has posts pulled from [`crate::FAN_OUT_THRESHOLD`] followers on. Its calls block for a moment, which only tests may do.
pub struct ModelStore {
    id_kind: IdKind,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) model: Mutex<Model>,
    wishes: Mutex<Wishes>,
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
            clock,
            model: Mutex::default(),
            wishes: Mutex::default(),
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

    /// The store after a restart: everything is rebuilt from the change log, but for what that does not tell: suggestions
    /// that were stored, idempotency keys, which ids were made, and why comments were removed.
    #[must_use]
    pub fn reopen(self) -> Self {
        let old = self.model.into_inner().expect("no call panicked inside the model");
        let mut model = Model::replay(old.changes);
        model.threads.unlogged = old.threads.unlogged;
        let mut kept = self.kept.into_inner().expect("no call panicked inside the model");
        let mut wishes = self.wishes.into_inner().expect("no call panicked inside the model");
        let planted = self.planted.map(|planted| planted.reopen(&mut model, &mut kept, &mut wishes));
        Self {
            model: Mutex::new(model),
            wishes: Mutex::new(wishes),
            kept: Mutex::new(kept),
            inboxes: self.inboxes,
            planted,
            ..Self::new(self.id_kind, self.clock)
        }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        locked(&self.model)
    }
}

impl EdgeStore for ModelStore {
    fn id_kind(&self) -> IdKind {
        self.id_kind
    }

    fn epoch(&self) -> Epoch {
        let changes = self.planted.as_ref().is_some_and(Planted::changes_epoch);
        if changes { Epoch(self.model().position().0) } else { Epoch(1) }
    }

    async fn write(&self, request: WriteRequest) -> Result<Receipt> {
        let result = match &self.planted {
            None => {
                let mut model = self.model();
                model.write(&request, self.clock.now())
            }
            Some(planted) => planted.write(&self.model, request, &*self.clock),
        };
        self.written.notify_all();
        result
    }

    async fn visible(&self, position: Position) -> Result<()> {
        if self.planted.as_ref().is_some_and(Planted::sees_the_future) {
            return Ok(());
        }
        let early = |model: &mut Model| model.position() < position;
        let waited = self.written.wait_timeout_while(self.model(), VISIBLE_WAIT_MAX, early);
        let (model, _) = waited.expect("no call panics inside the model");
        if model.position() >= position {
            Ok(())
        } else {
            Err(Error::NotYetVisible { asked: position, current: model.position() })
        }
    }

    async fn contains(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>> {
        if let Some(planted) = &self.planted {
            return planted.contains(&self.model, kind, edges);
        }
        let model = self.model();
        Ok(edges.iter().map(|&edge| model.contains(kind, edge)).collect())
    }

    async fn since(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>> {
        if let Some(planted) = &self.planted {
            return planted.since(&self.model(), kind, edges);
        }
        let model = self.model();
        Ok(edges.iter().map(|&edge| model.since(kind, edge)).collect())
    }

    async fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
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
    ) -> Result<Vec<ListEntry>> {
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
    ) -> Result<Overlap> {
        match &self.planted {
            None => Ok(self.model().overlap(kind, sets, after, limit)),
            Some(planted) => planted.overlap(&self.model(), kind, sets, (after, limit)),
        }
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>> {
        if let Some(planted) = &self.planted {
            return planted.counts(&self.model(), kind, of);
        }
        let model = self.model();
        Ok(of.iter().map(|&id| model.counts(kind, id)).collect())
    }
}

impl SuggestionStore for ModelStore {
    async fn candidates(&self, of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>> {
        match &self.planted {
            None => Ok(self.model().candidates(of, bounds)),
            Some(planted) => Ok(planted.candidates(&self.model(), of, bounds)),
        }
    }

    async fn stored_suggestions(&self, of: Id, max_age: Duration) -> Result<Option<StoredSuggestions>> {
        let (kept, now) = (locked(&self.kept), self.clock.now());
        match &self.planted {
            None => Ok(kept.stored(of, max_age, now)),
            Some(planted) => Ok(planted.stored(&kept, of, max_age, now)),
        }
    }

    fn suggest_for_everyone(
        &self,
        request: EveryoneRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<EveryoneReport> {
        let everyone = Everyone { model: &self.model, kept: &self.kept, clock: &*self.clock };
        match &self.planted {
            None => Ok(everyone.run(request, watch)),
            Some(planted) => Ok(planted.everyone(&everyone, request, watch)),
        }
    }
}

impl PostStore for ModelStore {
    async fn register(&self, wish: NewPost) -> Result<Posted> {
        let result = match &self.planted {
            None => {
                let (mut model, mut wishes, now) = (self.model(), locked(&self.wishes), self.clock.now());
                let made = wishes.make_id(&model, self.id_kind, now);
                model.register(&mut wishes, &wish, made, now)
            }
            Some(planted) => planted.register((&self.model, &self.wishes), &wish, self.id_kind, &*self.clock),
        };
        self.written.notify_all();
        result
    }

    async fn delete_post(&self, id: Id) -> Result<Removed> {
        let result = match &self.planted {
            None => self.model().delete_post(id, self.clock.now()),
            Some(planted) => planted.delete_post(&mut self.model(), id, self.clock.now()),
        };
        self.written.notify_all();
        result
    }

    async fn posts(&self, ids: &[Id]) -> Result<Vec<Option<PostState>>> {
        let model = self.model();
        match &self.planted {
            None => Ok(ids.iter().map(|&id| model.post(id)).collect()),
            Some(planted) => Ok(planted.posts(&model, ids)),
        }
    }

    async fn posts_by(&self, author: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        match &self.planted {
            None => Ok(self.model().posts_by(author, after, limit)),
            Some(planted) => Ok(planted.posts_by(&self.model(), author, (after, limit))),
        }
    }
}

impl FeedStore for ModelStore {
    async fn feed(&self, of: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
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
    async fn inbox(&self, of: Id) -> Result<Option<Inbox>> {
        let (model, made_at) = (self.model(), locked(&self.inboxes).get(&of).copied());
        match &self.planted {
            None => Ok(made_at.map(|_| model.inbox(of))),
            Some(planted) => Ok(planted.inbox_of(&model, of, made_at)),
        }
    }

    async fn forget_inbox(&self, of: Id) -> Result<()> {
        if self.planted.as_ref().is_none_or(|planted| planted.forgets(of)) {
            locked(&self.inboxes).remove(&of);
        }
        Ok(())
    }
}

impl ChangeLog for ModelStore {
    fn span(&self) -> LogSpan {
        LogSpan { epoch: self.epoch(), trimmed: Position::START, newest: self.model().position() }
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>> {
        match &self.planted {
            None => Ok(self.model().changes(after, limit)),
            Some(planted) => Ok(planted.changes(&self.model(), after, limit)),
        }
    }
}
