//! Faults of posts: of registering and deleting them, of the ids that are made, and of an author's list.

use std::cmp::Reverse;
use std::sync::Mutex;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::feeds::{Delivery, NewPost, Post, PostState, PostWritten, WriteOutcome};
use kinfolk_core::{Clock, EdgeKind, Error, Id, IdKind, Result, Timestamp};

use crate::faults::graph::reads::Page;
use crate::faults::{Fault, Planted, locked_model};
use crate::model::Model;
use crate::model::posts::{AHEAD_MS_MAX, FAN_OUT_THRESHOLD, RequestState};
use crate::model::suggestions::locked;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

impl Planted {
    pub(crate) fn register(
        &self,
        (model, request_state): (&Mutex<Model>, &Mutex<RequestState>),
        request: &NewPost,
        kind: IdKind,
        clock: &dyn Clock,
    ) -> Result<PostWritten> {
        if self.fault == Fault::PostDecidedBefore {
            let found = locked_model(model).repeated(&locked(request_state), request)?;
            Self::gap();
            let (mut model, mut request_state) = (locked_model(model), locked(request_state));
            let generated = request_state.generate_id(&model, kind, clock.now());
            return Ok(match found {
                Some(post) => PostWritten { position: model.position, post, is_new: false },
                None => model.insert(&mut request_state, request, generated, clock.now()),
            });
        }
        let (mut model, mut request_state, now) = (locked_model(model), locked(request_state), clock.now());
        let request = self.distort_wish(&mut model, &mut request_state, request, now)?;
        if let Some(post) = self.taken_for_repetition(&model, &request_state, &request) {
            return Ok(PostWritten { position: model.position, post, is_new: false });
        }
        let generated = self.generate_id(&model, &request_state, kind, now);
        let future = request.created_at.is_some_and(|input| input > now.plus_millis(AHEAD_MS_MAX));
        let mut posted = match self.fault {
            Fault::PostFutureAccepted if future => match model.repeated(&request_state, &request)? {
                Some(post) => PostWritten { position: model.position, post, is_new: false },
                None => model.insert(&mut request_state, &request, generated, now),
            },
            _ => model.register(&mut request_state, &request, generated, now)?,
        };
        self.distort_posted(&mut model, &request, &mut posted, now);
        if self.fault == Fault::PostForgetsKeyBesideId && request.id.is_some() {
            request_state.keys.retain(|_, id| *id != posted.post.id);
        }
        Ok(posted)
    }

    /// The request as the fault hears it; what it has forgotten is taken out of what is known.
    fn distort_wish(
        &self,
        model: &mut Model,
        request_state: &mut RequestState,
        request: &NewPost,
        now: Timestamp,
    ) -> Result<NewPost> {
        let mut request = request.clone();
        let known = request.id.filter(|id| model.posts.contains_key(id)).or(request_state.post_of(&request));
        let deleted = |id: &Id| model.posts.get(id).is_some_and(|registered| registered.deleted);
        let future = request.created_at.filter(|&input| input > now.plus_millis(AHEAD_MS_MAX));
        match self.fault {
            Fault::PostRepeatComparesNow if known.is_some() => {
                request.created_at = request.created_at.or(Some(now));
            }
            Fault::PostDeletedIdIsFree => {
                let free = request.id.filter(deleted);
                free.into_iter().for_each(|id| _ = model.posts.remove(&id));
            }
            Fault::PostDeletedKeyIsFree => {
                let free: Vec<Id> = request_state.post_of(&request).filter(deleted).into_iter().collect();
                request_state.keys.retain(|_, id| !free.contains(id));
            }
            Fault::PostTrimsPayload => request.payload = request.payload.map(|payload| payload.trim().into()),
            Fault::PostTimeGoesBackWithClock if known.is_none() => {
                request.created_at = request.created_at.or(Some(now));
            }
            Fault::PostRepeatOfFutureRefused => {
                future.map_or(Ok(()), |input| Err(Error::PostInFuture { created_at: input }))?;
            }
            Fault::PostPastRefused if request.created_at.is_some_and(|at| at.plus_millis(DAY_MS) < now) => {
                return Err(Error::InvalidRequest { detail: "a post is a day old at most".to_owned() });
            }
            _ => {}
        }
        Ok(request)
    }

    /// The post that a fault takes a request to repeat, though it does not.
    fn taken_for_repetition(
        &self,
        model: &Model,
        request_state: &RequestState,
        request: &NewPost,
    ) -> Option<Post> {
        let id = match self.fault {
            Fault::PostIdIgnoresContent => request.id,
            Fault::PostKeyIgnoresContent => request_state.post_of(request),
            Fault::PostKeysShared => {
                let key = request.idempotency_key.as_ref()?;
                request_state.keys.iter().find(|((_, known), _)| known == key).map(|(_, &id)| id)
            }
            _ => None,
        };
        let registered = model.posts.get(&id?)?;
        (!registered.deleted).then(|| registered.post.clone())
    }

    fn generate_id(&self, model: &Model, request_state: &RequestState, kind: IdKind, now: Timestamp) -> Id {
        match self.fault {
            Fault::GeneratedIdsFromClock => RequestState::default().generate_id(model, kind, now),
            Fault::GeneratedIdsCollide => request_state.generate_id(&Model::default(), kind, now),
            _ => request_state.generate_id(model, kind, now),
        }
    }

    /// What the fault makes of a post that is registered, or of one that was before.
    fn distort_posted(&self, model: &mut Model, request: &NewPost, posted: &mut PostWritten, now: Timestamp) {
        let author = posted.post.author;
        if !posted.is_new {
            match self.fault {
                Fault::PostRepeatEmitsEvent => {
                    let body =
                        ChangeBody::Posted { post: posted.post.clone(), delivery: model.delivery_by(author) };
                    model.record(now, body);
                    posted.position = model.position;
                }
                Fault::PostRepeatSaysNew => posted.is_new = true,
                _ => {}
            }
            return;
        }
        let followers = |kinds: &[EdgeKind]| -> u64 {
            kinds.iter().map(|&kind| model.counts(kind, author).followers).sum()
        };
        let pulled = match self.fault {
            Fault::DeliveryOffByOne => followers(&[EdgeKind::Follow]) > FAN_OUT_THRESHOLD,
            Fault::DeliveryCountsAllKinds => followers(&EdgeKind::ALL) >= FAN_OUT_THRESHOLD,
            _ => model.delivery_by(author) == Delivery::Pull,
        };
        let reported = if pulled { Delivery::Pull } else { Delivery::Push };
        model.posts.entry(posted.post.id).and_modify(|registered| registered.delivery = reported);
        let Some(Change { at, body: ChangeBody::Posted { delivery, .. }, .. }) = model.changes.last_mut()
        else {
            return;
        };
        *delivery = reported;
        match self.fault {
            Fault::PostEventAtItsTime => *at = posted.post.created_at,
            Fault::PostMovesTime => model.floor = model.floor.max(request.created_at.unwrap_or_default()),
            _ => {}
        }
    }

    pub(crate) fn delete_post(&self, model: &mut Model, id: Id, now: Timestamp) -> Result<WriteOutcome> {
        let unknown = !model.posts.contains_key(&id);
        if self.fault == Fault::DeletionOfNothingSucceeds && unknown {
            return Ok(WriteOutcome { position: model.position, changed: false });
        }
        let mut removed = model.delete_post(id, now)?;
        match self.fault {
            Fault::DeletionRepeatEmitsEvent if !removed.changed => {
                let Post { author, created_at, .. } = model.posts[&id].post;
                model.record(now, ChangeBody::PostDeleted { id, author, created_at });
                removed.position = model.position;
            }
            Fault::DeletionForgetsTime => {
                if let Some(Change { at, body: ChangeBody::PostDeleted { created_at, .. }, .. }) =
                    model.changes.last_mut()
                {
                    *created_at = *at;
                }
            }
            _ => {}
        }
        Ok(removed)
    }

    pub(crate) fn posts(&self, model: &Model, ids: &[Id]) -> Vec<Option<PostState>> {
        let mut ids = ids.to_vec();
        if self.fault == Fault::AnswersInOtherOrder {
            ids.sort();
        }
        let reported = |id| match (self.fault, model.post(id)?) {
            (Fault::DeletionLeavesNoMark, PostState::Deleted { .. }) => None,
            (Fault::DeliveryNotRecorded, PostState::Present(post, _)) => {
                let delivery = model.delivery_by(post.author);
                Some(PostState::Present(post, delivery))
            }
            (_, state) => Some(state),
        };
        ids.into_iter().map(reported).collect()
    }

    pub(crate) fn posts_by(&self, model: &Model, author: Id, page: Page) -> Vec<Post> {
        let of_author = model.posts.values().filter(|registered| registered.post.author == author);
        let shown = of_author.filter(|registered| {
            !registered.deleted
                || matches!(self.fault, Fault::PostsShowDeleted | Fault::PostsFilteredAfterPaging)
        });
        let posts = shown.map(|registered| registered.post.clone()).collect();
        let mut page = self.page_of_posts(model, posts, page);
        if self.fault == Fault::PostsFilteredAfterPaging {
            page.retain(|post| !model.posts[&post.id].deleted);
        }
        page
    }

    /// The part of some posts that is asked for, sorted as the fault sees it.
    pub(in crate::faults) fn page_of_posts(
        &self,
        model: &Model,
        mut posts: Vec<Post>,
        (after, limit): Page,
    ) -> Vec<Post> {
        match self.fault {
            Fault::PostsOrderedByTimeOnly => posts.sort_by_key(|post| (Reverse(post.created_at), post.id)),
            _ => posts.sort_by_key(Post::key),
        }
        let is_there = |id| model.posts.get(&id).is_some_and(|registered| !registered.deleted);
        if let Some(after) = after {
            posts.retain(|post| match self.fault {
                Fault::PostsOrderedByTimeOnly => {
                    (Reverse(post.created_at), post.id) > (Reverse(after.since), after.id)
                }
                Fault::PostCursorByTimeSkips => post.created_at < after.since,
                Fault::PostCursorByTimeRepeats => post.created_at <= after.since,
                Fault::PostCursorInclusive => post.key() >= after,
                Fault::PostCursorNeedsPost => post.key() > after && is_there(after.id),
                _ => post.key() > after,
            });
        }
        if self.fault == Fault::PostsOldestFirst {
            posts.reverse();
        }
        posts.truncate(limit);
        posts
    }
}
