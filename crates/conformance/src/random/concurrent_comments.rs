//! Random histories of several people in few threads at once. Each race has one winner; readers never see what was never
//! written; and once all is quiet, the log tells how everything came about.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    Branch, Comment, CommentChange, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentWritten,
    Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::feeds::{NewPost, WriteOutcome};
use kinfolk_core::{Error, ErrorCode, Frontier, Id, IdKind, Position, Result};

use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::model::Model;
use crate::model::comments::text_of;
use crate::model::suggestions::locked;
use crate::ports::ContentPorts;
use crate::random::Random;
use crate::random::compare::{ENTRIES_MAX, Verdict, answer, equal, walk_by};
use crate::random::compare_comments::compare_comments;
use crate::seen::Seen;
use crate::threads::{at_once, block_on};
use crate::users::user;

/// Threads that are written to all the time; one that is locked now and then; and one whose post is deleted.
const PARENTS: [(ParentKind, u64); 4] =
    [(ParentKind::Post, 50), (ParentKind::Item, 50), (ParentKind::Conversation, 51), (ParentKind::Post, 52)];
const LOCKED: usize = 2;
const DELETED: usize = 3;
/// Who writes the same wishes from two threads.
const TWIN: u64 = 0;
const REPLIER: u64 = 1;
/// Whose comments nobody changes.
const STEADY: u64 = 2;
const USERS: u64 = 3;
const STEPS: u64 = 24;
const DEPTH_MAX: u8 = 3;

/// Runs `rounds` histories, each on a fresh store: threads write, repeat each other's wishes, edit the same versions, delete,
/// remove, purge, reply and lock while others read. Panics if a race has not one winner, if a reader sees what was not
/// there, or if in the end anything is not what the log says.
pub fn concurrent_comments<S: ContentPorts>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    for round in 0..u64::from(rounds) {
        let id_kind = if round % 2 == 0 { IdKind::Integer } else { IdKind::Uuid };
        let clock = Arc::new(SimulatedClock::default());
        let store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
        let history = History { store, seen: Mutex::default(), clock, id_kind, known: Mutex::default() };
        history.begin();
        at_once(9, |thread| {
            let random = Random::new((seed ^ round) << 8 | thread as u64);
            match thread {
                // The same seed: both wish for the same.
                0 | 1 => history.write_twice(thread, Random::new(seed ^ round)),
                2 | 3 => history.edit(thread, random),
                4 => history.withdraw(random),
                5 => history.reply(random),
                6 => history.moderate(random),
                _ => history.read(random),
            }
        });
        history.audit().unwrap_or_else(|wrong| {
            panic!("concurrent comments (seed {seed}, round {round}, {} ids): {wrong}", id_kind.name())
        });
    }
}

/// What is known beside the store.
#[derive(Clone, Debug, Default)]
struct Known {
    /// All comments whose writing was acknowledged.
    written: BTreeMap<CommentId, Parent>,
    /// Comments that nobody changes.
    steady: Vec<Comment>,
    /// All texts that anybody ever asked for, before the store was asked.
    asked: BTreeSet<Arc<str>>,
    /// What each version was acknowledged to say.
    texts: BTreeMap<(CommentId, u32), Arc<str>>,
    /// How bad the status of a comment is at least.
    statuses: BTreeMap<CommentId, CommentStatus>,
    reasons: BTreeMap<CommentId, Arc<str>>,
    /// Who withdrew a comment at a position.
    moderators: HashMap<Position, Moderator>,
    /// What each of the twins was answered, by the number of the wish.
    twins: BTreeMap<u64, Vec<std::result::Result<CommentWritten, ErrorCode>>>,
    /// The positions of all changes that were acknowledged.
    positions: Vec<Position>,
}

struct History<S> {
    store: S,
    /// What was written and is visible.
    seen: Mutex<Frontier>,
    clock: Arc<SimulatedClock>,
    id_kind: IdKind,
    known: Mutex<Known>,
}

impl<S: ContentPorts> History<S> {
    /// Everybody's later reads must have seen this.
    fn saw(&self, position: Position) {
        locked(&self.seen).advance(position);
    }

    fn reader(&self) -> Seen<'_, S> {
        Seen::new(&self.store, locked(&self.seen).clone())
    }

    fn id(&self, number: u64) -> Id {
        user(self.id_kind, number)
    }

    fn parent(&self, index: usize) -> Parent {
        let (kind, id) = PARENTS[index];
        Parent { kind, id: self.id(id) }
    }

    fn parents(&self) -> Vec<Parent> {
        (0..PARENTS.len()).map(|index| self.parent(index)).collect()
    }

    fn begin(&self) {
        for parent in self.parents().into_iter().filter(|parent| parent.kind == ParentKind::Post) {
            let (id, author) = (Some(parent.id), self.id(TWIN));
            let wish = NewPost { id, author, created_at: None, payload: None, idempotency_key: None };
            let posted = block_on(self.store.register(wish)).unwrap();
            locked(&self.known).positions.push(posted.position);
        }
        for number in 0..8 {
            let wish = self.wish(self.parent(number % 2), STEADY, None, &format!("v1 steady {number}"));
            let comment = self.write(wish).unwrap().comment;
            locked(&self.known).steady.push(comment);
            let wish = self.wish(self.parent(number % 2), TWIN, None, &format!("v1 first {number}"));
            self.write(wish).unwrap();
        }
    }

    fn wish(&self, parent: Parent, author: u64, reply_to: Option<CommentId>, text: &str) -> NewComment {
        let body: Arc<str> = text.into();
        locked(&self.known).asked.insert(Arc::clone(&body));
        let author = self.id(author);
        NewComment { parent, author, body, reply_to, idempotency_key: None, depth_max: DEPTH_MAX }
    }

    /// Writes a comment, and keeps what was answered once it is visible.
    fn write(&self, wish: NewComment) -> Result<CommentWritten> {
        let written = block_on(self.store.comment(wish.clone()))?;
        self.saw(written.position);
        let mut known = locked(&self.known);
        let comment = &written.comment;
        known.written.insert(comment.id, comment.parent);
        if written.is_new {
            known.positions.push(written.position);
            known.texts.insert((comment.id, 1), wish.body);
        }
        Ok(written)
    }

    /// Two threads do the same: of each wish one is first, and the other repeats it.
    fn write_twice(&self, thread: usize, mut random: Random) {
        for number in 0..STEPS {
            self.clock.advance(random.below(2));
            let parent = self.parent(random.below(PARENTS.len() as u64) as usize);
            // Now and then the twins do not agree on the text.
            let disagreement = if random.below(6) == 0 { thread } else { 0 };
            let text = format!("v1 of {number} by {disagreement}");
            let wish = NewComment {
                idempotency_key: Some(format!("key {number}").into()),
                ..self.wish(parent, TWIN, None, &text)
            };
            let answer = self.write(wish).map_err(|error| error.code());
            locked(&self.known).twins.entry(number).or_default().push(answer);
        }
    }

    /// A comment that somebody may change.
    fn any(&self, random: &mut Random) -> Option<CommentId> {
        let known = locked(&self.known);
        let ids: Vec<CommentId> = known.written.keys().copied().collect();
        let steady: BTreeSet<CommentId> = known.steady.iter().map(|comment| comment.id).collect();
        let ids: Vec<CommentId> = ids.into_iter().filter(|id| !steady.contains(id)).collect();
        // Mostly the newest, so that threads meet.
        let newest = ids.len().saturating_sub(1 + random.below(4) as usize);
        ids.get(newest).copied()
    }

    fn edit(&self, thread: usize, mut random: Random) {
        for number in 0..STEPS {
            let Some(id) = self.any(&mut random) else { continue };
            let before = block_on(self.reader().comments(&[id])).unwrap().remove(0).expect("it was written");
            let version = before.version + 1;
            let body: Arc<str> = format!("v{version} of {number} by {thread}").into();
            locked(&self.known).asked.insert(Arc::clone(&body));
            let edit = CommentEdit { id, version: before.version, body: Arc::clone(&body) };
            match block_on(self.store.edit_comment(edit)) {
                Ok(edited) => {
                    assert_eq!(
                        (edited.comment.version, &edited.comment.body),
                        (version, &Some(Arc::clone(&body)))
                    );
                    let mut known = locked(&self.known);
                    known.positions.push(edited.position);
                    let other = known.texts.insert((id, version), body);
                    assert_eq!(other, None, "two edits of one version of {id} won");
                }
                Err(Error::VersionConflict { current }) => {
                    assert!(current >= version, "{current} of {before:?}");
                }
                Err(Error::CommentDeleted { .. }) => self.assert_withdrawn(id),
                Err(error) => panic!("an edit of {before:?} failed: {error}"),
            }
        }
    }

    fn assert_withdrawn(&self, id: CommentId) {
        let comment = block_on(self.reader().comments(&[id])).unwrap().remove(0).expect("it was written");
        assert_ne!(comment.status, CommentStatus::Active, "{comment:?}");
    }

    fn withdraw(&self, mut random: Random) {
        for number in 0..STEPS {
            let Some(id) = self.any(&mut random) else { continue };
            let reason: Arc<str> = format!("reason {number}").into();
            let withdrawal = match random.below(5) {
                0 | 1 => Withdrawal::Delete,
                2 | 3 => Withdrawal::Remove(Arc::clone(&reason)),
                _ => Withdrawal::Purge,
            };
            let by = (withdrawal != Withdrawal::Delete).then(|| Moderator::Service(Arc::clone(&reason)));
            let status = withdrawal.status();
            let WriteOutcome { position, changed } =
                block_on(self.store.withdraw_comment(id, withdrawal, by.clone())).unwrap();
            self.saw(position);
            self.come_too_late(id);
            let mut known = locked(&self.known);
            // Nobody else withdraws.
            let before = known.statuses.get(&id).copied().unwrap_or(CommentStatus::Active);
            assert_eq!(changed, status > before, "{id} was {before:?}, and is to be {status:?}");
            if changed {
                known.positions.push(position);
                known.statuses.insert(id, status);
                known.moderators.extend(by.map(|by| (position, by)));
                if status == CommentStatus::Removed {
                    known.reasons.insert(id, reason);
                }
            }
        }
    }

    /// What was withdrawn is not answered or edited any more, however the threads come to run.
    fn come_too_late(&self, id: CommentId) {
        let comment = block_on(self.reader().comments(&[id])).unwrap().remove(0).expect("it was written");
        let reply = self.write(self.wish(comment.parent, REPLIER, Some(id), "v1 too late"));
        let code = reply.as_ref().map_err(Error::code);
        let refusals = [ErrorCode::InvalidReply, ErrorCode::ThreadLocked, ErrorCode::NotFound];
        assert!(code.is_err_and(|code| refusals.contains(&code)), "a reply to {comment:?}: {reply:?}");
        let edit = CommentEdit { id, version: comment.version, body: "too late".into() };
        let edited = block_on(self.store.edit_comment(edit));
        assert!(matches!(edited, Err(Error::CommentDeleted { .. })), "an edit of {comment:?}: {edited:?}");
    }

    fn reply(&self, mut random: Random) {
        for number in 0..STEPS {
            let Some(id) = self.any(&mut random) else { continue };
            let parent = locked(&self.known).written[&id];
            let wish = self.wish(parent, REPLIER, Some(id), &format!("v1 reply {number}"));
            match self.write(wish) {
                Ok(reply) => {
                    let found = self.branch(parent, Some(id), 3);
                    assert!(found.contains(&reply.comment.id), "{reply:?} is not among {found:?}");
                }
                Err(Error::InvalidReply { .. }) => {
                    let above =
                        block_on(self.reader().comments(&[id])).unwrap().remove(0).expect("it was written");
                    assert!(above.status != CommentStatus::Active || above.depth == DEPTH_MAX, "{above:?}");
                }
                Err(Error::ThreadLocked) => assert_eq!(parent, self.parent(LOCKED)),
                Err(Error::NotFound { .. }) => assert_eq!(parent, self.parent(DELETED)),
                Err(error) => panic!("a reply to {id} failed: {error}"),
            }
        }
    }

    /// The only one that locks and that deletes posts.
    fn moderate(&self, mut random: Random) {
        let mut is_locked = false;
        for number in 0..STEPS {
            let wanted = random.below(2) == 0;
            let done = block_on(self.store.lock_comment_thread(self.parent(LOCKED), wanted)).unwrap();
            assert_eq!(done.changed, wanted != is_locked, "{wanted} after {is_locked}");
            is_locked = wanted;
            let mut positions = vec![done];
            self.saw(done.position);
            let refused = self.write(self.wish(self.parent(LOCKED), STEADY, None, "v1 moderator"));
            match refused {
                Ok(_) => assert!(!is_locked, "a locked thread takes nothing"),
                Err(error) => assert!(is_locked && error.code() == ErrorCode::ThreadLocked, "{error}"),
            }
            if number == STEPS / 2 {
                positions.push(block_on(self.store.delete_post(self.parent(DELETED).id)).unwrap());
            }
            let changed = positions.into_iter().filter(|done| done.changed).map(|done| done.position);
            locked(&self.known).positions.extend(changed);
        }
    }

    fn branch(&self, parent: Parent, reply_to: Option<CommentId>, limit: usize) -> Vec<CommentId> {
        let read = |after| {
            let branch = Branch { parent, reply_to, after };
            answer("replies", self.reader().replies(&[branch], limit)).map(|found| found.concat())
        };
        self.looked_at(walk_by(|comment: &Comment| comment.id, limit, read), CommentOrder::Oldest)
    }

    fn comment_thread(&self, parent: Parent, order: CommentOrder, limit: usize) -> Vec<CommentId> {
        let read = |after| answer("thread", self.reader().comment_thread(parent, order, after, limit));
        self.looked_at(walk_by(|comment: &Comment| comment.id, limit, read), order)
    }

    fn by(&self, author: u64, limit: usize) -> Vec<CommentId> {
        let author = self.id(author);
        let read = |after| answer("comments_by", self.reader().comments_by(author, after, limit));
        let walked = walk_by(|comment: &Comment| comment.id, limit, read);
        for comment in walked.iter().flatten() {
            assert_eq!((comment.author, comment.status), (author, CommentStatus::Active), "{comment:?}");
        }
        self.looked_at(walked, CommentOrder::Newest)
    }

    /// What every walk must be: in order, nothing twice, and each comment as it was at one moment.
    fn looked_at(
        &self,
        walked: std::result::Result<Vec<Comment>, String>,
        order: CommentOrder,
    ) -> Vec<CommentId> {
        let walked = walked.unwrap_or_else(|wrong| panic!("a walk: {wrong}"));
        let ids: Vec<CommentId> = walked.iter().map(|comment| comment.id).collect();
        let sorted = match order {
            CommentOrder::Oldest => ids.is_sorted_by(|a, b| a < b),
            CommentOrder::Newest => ids.is_sorted_by(|a, b| a > b),
        };
        assert!(sorted, "out of order or twice: {ids:?}");
        let known = locked(&self.known);
        for comment in &walked {
            let Comment { version, edited_at, status, body, .. } = comment;
            assert_eq!(edited_at.is_some(), *version > 1, "{comment:?}");
            assert_eq!(body.is_none(), *status == CommentStatus::Purged, "{comment:?}");
            if let Some(body) = body {
                let of_version = body.starts_with(&format!("v{version} "));
                assert!(of_version && known.asked.contains(body), "nobody wrote {comment:?}");
            }
        }
        ids
    }

    fn read(&self, mut random: Random) {
        for _ in 0..STEPS {
            let limit = 1 + random.below(6) as usize;
            let (before, index) = (locked(&self.known).clone(), random.below(2) as usize);
            let parent = self.parent(index);
            let order = if random.below(2) == 0 { CommentOrder::Oldest } else { CommentOrder::Newest };
            for met in [self.comment_thread(parent, order, limit), self.by(STEADY, limit)] {
                let steady = before.steady.iter().filter(|comment| comment.parent == parent);
                let missing = steady.filter(|comment| !met.contains(&comment.id)).collect::<Vec<_>>();
                assert!(missing.is_empty(), "{missing:?} were there all the time, but the walk met {met:?}");
            }
            let (walked, ids) = (self.comment_thread(parent, order, limit), before.written.iter());
            let missing: Vec<_> = ids.filter(|(id, of)| **of == parent && !walked.contains(id)).collect();
            assert!(missing.is_empty(), "{missing:?} were written before, but the walk met {walked:?}");
            let ids: Vec<CommentId> = before.statuses.keys().copied().collect();
            let found = block_on(self.reader().comments(&ids)).unwrap();
            for (comment, status) in found.into_iter().flatten().zip(before.statuses.values()) {
                assert!(comment.status >= *status, "{comment:?} was {status:?} before");
            }
            self.branch(parent, None, limit);
            self.read_texts(&before, &mut random);
        }
    }

    /// A comment's texts are those that were acknowledged, and more of them later.
    fn read_texts(&self, before: &Known, random: &mut Random) {
        let Some(id) = self.any(random) else { return };
        let texts = block_on(self.reader().comment_versions(id, 0, ENTRIES_MAX)).unwrap();
        assert!(texts.iter().zip(1..).all(|(text, version)| text.version == version), "{texts:?}");
        let acknowledged = before.texts.range((id, 0)..=(id, u32::MAX)).count();
        if texts.len() < acknowledged {
            let comment = block_on(self.reader().comments(&[id])).unwrap().remove(0).expect("it was written");
            assert_eq!(comment.status, CommentStatus::Purged, "{acknowledged} texts before, now {texts:?}");
        }
        for text in &texts {
            let told = before.texts.get(&(id, text.version));
            assert!(told.is_none_or(|told| *told == text.body), "{text:?} was {told:?}");
        }
    }

    /// Once all is quiet: the log has every change once, each was allowed, and everything is what it says.
    fn audit(&self) -> Verdict {
        let known = locked(&self.known);
        audit_twins(&known)?;
        let mut changes = answer("changes", self.reader().whole_log())?;
        let mut acknowledged = known.positions.clone();
        acknowledged.sort_unstable_by_key(|position| position.sequence);
        let logged: Vec<Position> = changes.iter().map(|change| change.position).collect();
        equal(|| "the changes in the log".to_owned(), &logged, &acknowledged)?;
        for change in &mut changes {
            if let Some((id, version, text)) = text_of(change) {
                *text = known.texts.get(&(id, version)).cloned();
            }
        }
        let mut model = Model::default();
        for change in changes {
            audit_change(&model, &change)?;
            if let ChangeBody::Comment(CommentChange::Withdrawn { by, .. }) = &change.body {
                let expected = known.moderators.get(&change.position);
                equal(|| format!("who withdrew in {change:?}"), &by.as_ref(), &expected)?;
            }
            model.apply(change);
        }
        model.threads.unlogged.reasons.clone_from(&known.reasons);
        let authors: Vec<Id> = (0..USERS).map(|number| self.id(number)).collect();
        compare_comments(&self.store, &model, &self.parents(), &authors)
    }
}

/// Of two equal wishes one is new and the other repeats it; of two that differ one is refused.
fn audit_twins(known: &Known) -> Verdict {
    for (number, answers) in &known.twins {
        let written: Vec<&CommentWritten> = answers.iter().flatten().collect();
        let refused: Vec<&ErrorCode> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        let new = written.iter().filter(|answer| answer.is_new).count();
        let right = match (&written[..], &refused[..]) {
            ([one, other], []) => new == 1 && one.comment.id == other.comment.id,
            // Or it was written after the thread was unlocked, or before it was locked or gone and repeated later.
            ([_], [ErrorCode::IdempotencyConflict | ErrorCode::ThreadLocked]) => new == 1,
            ([], [one, other]) => {
                let refusals = [ErrorCode::ThreadLocked, ErrorCode::NotFound];
                refusals.contains(one) && refusals.contains(other)
            }
            // The first was refused, and no retry is after the end.
            _ => false,
        };
        if !right {
            return Err(format!("the wish {number} was answered with {answers:?}"));
        }
    }
    Ok(())
}

/// Whether the state before allows a change.
fn audit_change(model: &Model, change: &Change) -> Verdict {
    let ChangeBody::Comment(told) = &change.body else { return Ok(()) };
    let wrong = |why: &str| Err(format!("{change:?}: {why}"));
    let comments = &model.threads.comments;
    match told {
        CommentChange::Written { id, parent, author, reply_to, depth, .. } => {
            if comments.last_key_value().is_some_and(|(newest, _)| newest >= id) {
                return wrong("its id is not the highest");
            }
            let (body, idempotency_key) = ("".into(), None);
            let wish = NewComment {
                parent: *parent,
                author: *author,
                body,
                reply_to: *reply_to,
                idempotency_key,
                depth_max: DEPTH_MAX,
            };
            let allowed = model.require_open(*parent).and_then(|()| model.depth_of(&wish));
            match allowed {
                Ok(expected) => equal(|| format!("the depth in {change:?}"), depth, &expected),
                Err(error) => wrong(&error.to_string()),
            }
        }
        CommentChange::Edited { id, version, .. } => match comments.get(id) {
            Some(written) if written.status != CommentStatus::Active => wrong("it was not active"),
            Some(written) => equal(|| format!("{change:?}"), version, &(written.version() + 1)),
            None => wrong("there is no such comment"),
        },
        CommentChange::Withdrawn { id, status, .. } => match comments.get(id) {
            Some(written) if written.status < *status => Ok(()),
            _ => wrong("it was not worse"),
        },
        CommentChange::Locked { parent, locked } => {
            let was = model.threads.locked.contains(parent);
            equal(|| format!("whether it was locked before {change:?}"), &was, &!locked)
        }
    }
}
