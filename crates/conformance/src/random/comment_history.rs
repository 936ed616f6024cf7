//! Random histories of comments, every answer of which is compared with the model: a state machine whose steps are made up
//! beforehand, so that a failure can be shrunk and repeated.

use std::sync::Arc;

use kinfolk_core::comments::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentVersion, CommentWritten, Moderator,
    NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::feeds::NewPost;
use kinfolk_core::{Clock, Id, IdKind, Result, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, prop_oneof};

use crate::clock::SimulatedClock;
use crate::model::Model;
use crate::model::posts::RequestState;
use crate::ports::ContentPorts;
use crate::random::compare::{Verdict, answer, equal};
use crate::random::compare_comments::{NOBODY, comparable, compare_comments};
use crate::random::history::{run_random, run_restarts};
use crate::seen::Seen;
use crate::threads::block_on;
use crate::users::user;
use crate::{Reopen, StoreFactory};

const USERS: u64 = 3;
/// Threads of two posts, and two that share an id with one of them.
const PARENTS: [(ParentKind, u64); 4] =
    [(ParentKind::Post, 50), (ParentKind::Post, 51), (ParentKind::Item, 50), (ParentKind::Conversation, 50)];
/// Few, so that the same text comes again.
const TEXTS: u64 = 4;
const KEYS: u64 = 5;
const DEPTH_MAX: u8 = 3;
const STEPS_MAX: usize = 50;
/// How many walks may be open at a time.
const WALKS: usize = 4;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Keys are kept for at least a week; older requests are not retried here.
const KEY_AGE_MS_MAX: u64 = 6 * DAY_MS;

/// How a request that is repeated differs from the first.
#[derive(Clone, Copy, Debug)]
enum Twist {
    None,
    Author(u64),
    Parent(usize),
    Text(u64),
    Reply(Option<usize>),
}

/// A list that is walked in pages. Comments are counted from the newest.
#[derive(Clone, Copy, Debug)]
enum List {
    Thread(usize, CommentOrder),
    Branch(usize, Option<usize>),
    By(u64),
    Texts(usize),
}

/// What one step of a history does. Comments are counted from the newest.
#[derive(Clone, Debug)]
enum Step {
    Write { parent: usize, author: u64, text: u64, key: Option<u64> },
    Reply { to: usize, author: u64, text: u64, key: Option<u64> },
    Retry { back: usize, twist: Twist },
    Edit { back: usize, behind: u32, text: u64 },
    Withdraw { back: usize, withdrawal: Withdrawal },
    Lock { parent: usize, locked: bool },
    DeletePost(usize),
    Walk { slot: usize, list: List, limit: usize },
    Erase,
    Advance(u64),
    TurnBack(u64),
    Restart,
}

/// Runs `cases` random histories of comments against a store and the model side by side, and panics with the shortest that
/// it finds for which any answer differs.
///
/// With `reopen`, histories contain restarts; it decides whether the store is closed before or just dropped. The
/// generator starts from `seed`, so that a run can be repeated; the message of a failure names it.
pub fn comment_histories<S: ContentPorts>(
    make: StoreFactory<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    cases: u32,
    seed: u64,
) {
    run_random("comment histories", vec(step(), 1..=STEPS_MAX), (cases, seed), |id_kind, steps| {
        run_history(make, reopen, id_kind, steps)
    });
}

/// Runs one history that has everything in it many times, with a restart after another step each time, and once with a
/// restart after every step. Panics if any answer differs from the model's.
pub fn comment_restarts<S: ContentPorts>(make: StoreFactory<'_, S>, reopen: Reopen<'_, S>) {
    run_restarts(&script(), &Step::Restart, |id_kind, steps| run_history(make, Some(reopen), id_kind, steps));
}

/// Every kind of change, with retries after each; the walks are open all the time.
fn script() -> Vec<Step> {
    let retry = |back| Step::Retry { back, twist: Twist::None };
    let walk = |slot, list| Step::Walk { slot, list, limit: 2 };
    let walks = [
        walk(0, List::Thread(0, CommentOrder::Oldest)),
        walk(1, List::Thread(0, CommentOrder::Newest)),
        walk(2, List::By(0)),
        walk(3, List::Branch(0, None)),
    ];
    let mut steps = Vec::new();
    for number in 0..3 {
        steps.push(Step::Write { parent: 0, author: 0, text: number, key: Some(number) });
        steps.push(Step::Reply { to: 0, author: 1, text: 3, key: Some(number) });
        steps.push(Step::Advance(1));
    }
    steps.extend(walks.clone());
    steps.extend([
        Step::Edit { back: 1, behind: 0, text: 3 },
        retry(1),
        Step::Edit { back: 1, behind: 1, text: 0 },
        Step::Withdraw { back: 3, withdrawal: Withdrawal::Delete },
        retry(3),
        Step::Withdraw { back: 5, withdrawal: Withdrawal::Remove("rude".into()) },
    ]);
    steps.extend(walks.clone());
    steps.extend([
        Step::Lock { parent: 0, locked: true },
        Step::Write { parent: 0, author: 1, text: 0, key: None },
        retry(0),
        Step::Withdraw { back: 1, withdrawal: Withdrawal::Purge },
        retry(1),
        Step::Erase,
        Step::Retry { back: 1, twist: Twist::Text(2) },
        Step::Lock { parent: 0, locked: false },
        Step::TurnBack(DAY_MS),
        Step::Reply { to: 0, author: 2, text: 1, key: None },
        Step::Write { parent: 2, author: 0, text: 1, key: Some(4) },
        Step::Lock { parent: 2, locked: true },
    ]);
    steps.extend(walks);
    steps.extend([
        Step::DeletePost(0),
        Step::Reply { to: 1, author: 0, text: 0, key: None },
        retry(0),
        retry(6),
    ]);
    steps
}

fn step() -> impl Strategy<Value = Step> {
    let parent = || prop_oneof![4 => Just(0_usize), 2 => Just(1), 2 => Just(2), 1 => Just(3)];
    let key = || option::weighted(0.6, 0..KEYS);
    // Mostly the newest, so that steps meet.
    let back = || prop_oneof![4 => 0..4_usize, 1 => 0..20_usize];
    let write = (parent(), 0..USERS, 0..TEXTS, key()).prop_map(|(parent, author, text, key)| Step::Write {
        parent,
        author,
        text,
        key,
    });
    let reply = (back(), 0..USERS, 0..TEXTS, key()).prop_map(|(to, author, text, key)| Step::Reply {
        to,
        author,
        text,
        key,
    });
    let twist = prop_oneof![
        5 => Just(Twist::None),
        1 => (0..USERS).prop_map(Twist::Author),
        1 => parent().prop_map(Twist::Parent),
        1 => (0..TEXTS).prop_map(Twist::Text),
        1 => option::of(back()).prop_map(Twist::Reply),
    ];
    let edit = (back(), prop_oneof![5 => Just(0), 1 => 1..3_u32, 1 => Just(u32::MAX)], 0..TEXTS)
        .prop_map(|(back, behind, text)| Step::Edit { back, behind, text });
    let withdrawal = prop_oneof![
        3 => Just(Withdrawal::Delete),
        2 => (0..2_u64).prop_map(|number| Withdrawal::Remove(format!("reason {number}").into())),
        2 => Just(Withdrawal::Purge),
    ];
    let order = prop_oneof![Just(CommentOrder::Oldest), Just(CommentOrder::Newest)];
    let list = prop_oneof![
        4 => (parent(), order).prop_map(|(parent, order)| List::Thread(parent, order)),
        2 => (parent(), option::of(back())).prop_map(|(parent, back)| List::Branch(parent, back)),
        2 => (0..USERS).prop_map(List::By),
        1 => back().prop_map(List::Texts),
    ];
    prop_oneof![
        18 => write,
        12 => reply,
        8 => (back(), twist).prop_map(|(back, twist)| Step::Retry { back, twist }),
        12 => edit,
        9 => (back(), withdrawal).prop_map(|(back, withdrawal)| Step::Withdraw { back, withdrawal }),
        4 => (parent(), proptest::bool::weighted(0.4)).prop_map(|(parent, locked)| Step::Lock { parent, locked }),
        1 => (0..2_usize).prop_map(Step::DeletePost),
        16 => (0..WALKS, list, 1..4_usize).prop_map(|(slot, list, limit)| Step::Walk { slot, list, limit }),
        1 => Just(Step::Erase),
        4 => (1..3_u64).prop_map(Step::Advance),
        1 => (1..3 * DAY_MS).prop_map(Step::Advance),
        1 => (1..DAY_MS).prop_map(Step::TurnBack),
        4 => Just(Step::Restart),
    ]
}

fn run_history<S: ContentPorts>(
    make: StoreFactory<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    id_kind: IdKind,
    steps: &[Step],
) -> Verdict {
    let clock = Arc::new(SimulatedClock::default());
    let mut store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
    let mut expected = Expected::new(id_kind, clock);
    expected.begin(&store)?;
    for (step, number) in steps.iter().zip(1..) {
        if let (Step::Restart, Some(reopen)) = (step, reopen) {
            store = reopen(store);
        }
        let verdict = expected.step(&store, step);
        verdict.map_err(|wrong| format!("step {number}, {step:?}: {wrong}"))?;
    }
    expected.compare_all(&store)
}

/// A request that was fulfilled.
#[derive(Clone, Debug)]
struct Fulfilled {
    request: NewComment,
    id: CommentId,
    at: Timestamp,
}

/// A walk that is open: over what, in pages of which length, and where it is.
#[derive(Clone, Copy, Debug)]
struct Walk {
    list: Place,
    limit: usize,
    after: Option<u128>,
}

/// A list of this history.
#[derive(Clone, Copy, Debug)]
enum Place {
    Thread(Parent, CommentOrder),
    Branch(Parent, Option<CommentId>),
    By(Id),
    Texts(CommentId),
}

/// What is known beside the store: the model, and where the walks are.
struct Expected {
    id_kind: IdKind,
    clock: Arc<SimulatedClock>,
    latest: Timestamp,
    model: Model,
    fulfilled: Vec<Fulfilled>,
    walks: [Option<Walk>; WALKS],
}

impl Expected {
    fn new(id_kind: IdKind, clock: Arc<SimulatedClock>) -> Self {
        let (latest, model) = (clock.now(), Model::default());
        Self { id_kind, latest, clock, model, fulfilled: Vec::new(), walks: [None; WALKS] }
    }

    fn parent(&self, index: usize) -> Parent {
        let (kind, id) = PARENTS[index];
        Parent { kind, id: user(self.id_kind, id) }
    }

    fn parents(&self) -> Vec<Parent> {
        (0..PARENTS.len()).map(|index| self.parent(index)).collect()
    }

    fn author(&self, number: u64) -> Id {
        user(self.id_kind, number)
    }

    fn back(&self, back: usize) -> Option<&Fulfilled> {
        self.fulfilled.iter().rev().nth(back)
    }

    /// The comment so far back, or one that is not there.
    fn id(&self, back: usize) -> CommentId {
        self.back(back).map_or(NOBODY, |fulfilled| fulfilled.id)
    }

    /// The posts.
    fn begin<S: ContentPorts>(&mut self, store: &S) -> Verdict {
        for parent in self.parents().into_iter().filter(|parent| parent.kind == ParentKind::Post) {
            let author = self.author(0);
            let request = NewPost {
                id: Some(parent.id),
                author,
                created_at: None,
                payload: None,
                idempotency_key: None,
            };
            let mut request_state = RequestState::default();
            self.model
                .register(&mut request_state, &request, parent.id, self.clock.now())
                .map_err(|error| error.to_string())?;
            answer("register", store.register(request))?;
        }
        Ok(())
    }

    /// The store, whose reads show at least what the model has.
    fn seen<'a, S>(&self, store: &'a S) -> Seen<'a, S> {
        Seen::new(store, self.model.frontier())
    }

    fn step<S: ContentPorts>(&mut self, store: &S, step: &Step) -> Verdict {
        match step.clone() {
            Step::Write { parent, author, text, key } => {
                let request = self.comment_request(self.parent(parent), None, (author, text, key));
                self.write(store, &request)
            }
            Step::Reply { to, author, text, key } => {
                let parent = self.back(to).map_or(self.parent(0), |above| above.request.parent);
                let request = self.comment_request(parent, Some(self.id(to)), (author, text, key));
                self.write(store, &request)
            }
            Step::Retry { back, twist } => self.retry(store, back, twist),
            Step::Edit { back, behind, text } => self.edit(store, back, behind, text),
            Step::Withdraw { back, withdrawal } => self.withdraw(store, self.id(back), withdrawal),
            Step::Lock { parent, locked } => self.lock(store, self.parent(parent), locked),
            Step::DeletePost(parent) => {
                let id = self.parent(parent).id;
                let expected = self.model.delete_post(id, self.clock.now());
                let found = block_on(store.delete_post(id));
                equal(|| format!("deletion of {id}"), &comparable(found), &comparable(expected))
            }
            Step::Walk { slot, list, limit } => self.walk(store, slot, list, limit),
            Step::Erase => answer("erase_purged", store.erase_purged()).map(drop),
            Step::Advance(millis) => {
                self.clock.advance(millis);
                self.latest = self.latest.max(self.clock.now());
                Ok(())
            }
            Step::TurnBack(millis) => {
                self.clock.turn_back(millis);
                Ok(())
            }
            Step::Restart => self.compare_all(store),
        }
    }

    fn comment_request(
        &self,
        parent: Parent,
        reply_to: Option<CommentId>,
        (author, text, key): (u64, u64, Option<u64>),
    ) -> NewComment {
        NewComment {
            parent,
            author: self.author(author),
            body: body(text),
            reply_to,
            idempotency_key: key.map(|key| format!("key {key}").into()),
            depth_max: DEPTH_MAX,
        }
    }

    fn retry<S: ContentPorts>(&mut self, store: &S, back: usize, twist: Twist) -> Verdict {
        let Some(Fulfilled { request, .. }) = self.back(back).cloned() else { return Ok(()) };
        let request = match twist {
            Twist::None => request,
            Twist::Author(number) => NewComment { author: self.author(number), ..request },
            Twist::Parent(index) => NewComment { parent: self.parent(index), ..request },
            Twist::Text(number) => NewComment { body: body(number), ..request },
            Twist::Reply(to) => NewComment { reply_to: to.map(|back| self.id(back)), ..request },
        };
        self.write(store, &request)
    }

    fn write<S: ContentPorts>(&mut self, store: &S, request: &NewComment) -> Verdict {
        if self.may_be_forgotten(request) {
            return Ok(());
        }
        let found = block_on(store.comment(request.clone()));
        let generated = self.is_id_generated(&found)?;
        let expected = self.model.write_comment(request, generated, self.clock.now());
        if let Ok(CommentWritten { comment, is_new: true, .. }) = &expected {
            self.fulfilled.push(Fulfilled { request: request.clone(), id: comment.id, at: self.latest });
        }
        equal(|| format!("answer to {request:?}"), &comparable(found), &comparable(expected))?;
        self.look(store, generated, request.parent)
    }

    /// Whether a request has a key that a store need not know any more.
    fn may_be_forgotten(&self, request: &NewComment) -> bool {
        let same_key = |other: &&Fulfilled| {
            (other.request.author, &other.request.idempotency_key)
                == (request.author, &request.idempotency_key)
        };
        let first = self.fulfilled.iter().find(same_key).filter(|_| request.idempotency_key.is_some());
        first.is_some_and(|first| self.latest.millis() - first.at.millis() > KEY_AGE_MS_MAX)
    }

    /// The id that the store made, which the model cannot know; it must be a higher one than all before.
    fn is_id_generated(&self, found: &Result<CommentWritten>) -> std::result::Result<CommentId, String> {
        let Ok(CommentWritten { comment: Comment { id, .. }, is_new: true, .. }) = found else {
            return Ok(NOBODY);
        };
        let newest = self.model.threads.comments.last_key_value().map(|(id, _)| *id);
        let is_version_7 = (id.0 >> 76 & 0xf, id.0 >> 62 & 3) == (7, 2);
        if is_version_7 && newest.is_none_or(|newest| *id > newest) {
            return Ok(*id);
        }
        Err(format!("{id} was made as an id after {newest:?}"))
    }

    fn edit<S: ContentPorts>(&mut self, store: &S, back: usize, behind: u32, text: u64) -> Verdict {
        let id = self.id(back);
        let current = self.model.comment(id).map_or(1, |comment| comment.version);
        let edit = CommentEdit { id, version: current.wrapping_sub(behind), body: body(text) };
        let expected = self.model.edit_comment(&edit, self.clock.now());
        let found = block_on(store.edit_comment(edit.clone()));
        equal(|| format!("answer to {edit:?}"), &comparable(found), &comparable(expected))?;
        self.look(store, id, self.parent(0))
    }

    fn withdraw<S: ContentPorts>(&mut self, store: &S, id: CommentId, withdrawal: Withdrawal) -> Verdict {
        // Of all sorts; what a known one has removed is purged by nobody known.
        let is_known = |comment: Comment| comment.removed_by.is_some();
        let by = match &withdrawal {
            Withdrawal::Delete => None,
            Withdrawal::Remove(reason) if reason.ends_with('1') => Some(Moderator::Service("key".into())),
            Withdrawal::Purge if self.model.comment(id).is_some_and(is_known) => None,
            Withdrawal::Remove(_) | Withdrawal::Purge => Some(Moderator::User(user(self.id_kind, 1))),
        };
        let expected = self.model.withdraw_comment(id, (&withdrawal, by.as_ref()), self.clock.now());
        let found = block_on(store.withdraw_comment(id, withdrawal, by));
        equal(|| format!("withdrawal of {id}"), &comparable(found), &comparable(expected))?;
        self.look(store, id, self.parent(0))
    }

    fn lock<S: ContentPorts>(&mut self, store: &S, parent: Parent, locked: bool) -> Verdict {
        let expected = self.model.lock_comment_thread(parent, locked, self.clock.now());
        let found = block_on(store.lock_comment_thread(parent, locked));
        equal(|| format!("lock of {parent:?}"), &comparable(found), &comparable(expected))?;
        self.look(store, NOBODY, parent)
    }

    /// What a step was about: a comment, the one that it answers, and a thread as a whole.
    fn look<S: ContentPorts>(&self, store: &S, id: CommentId, parent: Parent) -> Verdict {
        let above = self.model.comment(id).and_then(|comment| comment.reply_to);
        let ids: Vec<CommentId> = [id].into_iter().chain(above).collect();
        let found = answer("comments", self.seen(store).comments(&ids))?;
        let expected: Vec<_> = ids.iter().map(|&id| self.model.comment(id)).collect();
        equal(|| "what it was about".to_owned(), &found, &expected)?;
        let found = answer("threads", self.seen(store).comment_threads(&[parent]))?;
        equal(|| format!("the state of {parent:?}"), &found, &vec![self.model.thread_state(parent)])
    }

    /// The next page of a walk that is open, or the first of a new one.
    fn walk<S: ContentPorts>(&mut self, store: &S, slot: usize, list: List, limit: usize) -> Verdict {
        let place = match list {
            List::Thread(parent, order) => Place::Thread(self.parent(parent), order),
            List::Branch(parent, back) => Place::Branch(self.parent(parent), back.map(|back| self.id(back))),
            List::By(author) => Place::By(self.author(author)),
            List::Texts(back) => Place::Texts(self.id(back)),
        };
        let walk = self.walks[slot].unwrap_or(Walk { list: place, limit, after: None });
        let (found, expected) = self.page(store, walk)?;
        equal(|| format!("{walk:?}"), &found, &expected)?;
        let last = found.last().filter(|_| found.len() == walk.limit).map(|(place, _)| *place);
        self.walks[slot] = last.map(|last| Walk { after: Some(last), ..walk });
        Ok(())
    }

    /// A page of the store, and of the model: the place of each entry, and all that is said of it.
    fn page<S: ContentPorts>(&self, store: &S, walk: Walk) -> std::result::Result<(Page, Page), String> {
        let (limit, after) = (walk.limit, walk.after.map(CommentId));
        let of_comments = |found: Vec<Comment>| -> Page {
            let entry = |comment: Comment| (comment.id.0, format!("{comment:?}"));
            found.into_iter().map(entry).collect()
        };
        let (found, expected) = match walk.list {
            Place::Thread(parent, order) => (
                answer("thread", self.seen(store).comment_thread(parent, order, after, limit))?,
                self.model.comment_thread(parent, order, after, limit),
            ),
            Place::Branch(parent, reply_to) => {
                let branch = Branch { parent, reply_to, after };
                let found = answer("replies", self.seen(store).replies(&[branch], limit))?;
                (found.concat(), self.model.replies(branch, limit))
            }
            Place::By(author) => (
                answer("comments_by", self.seen(store).comments_by(author, after, limit))?,
                self.model.comments_by(author, after, limit),
            ),
            Place::Texts(id) => {
                let after = walk.after.unwrap_or(0) as u32;
                let found = answer("comment_versions", self.seen(store).comment_versions(id, after, limit))?;
                let expected = self.model.comment_versions(id, after, limit);
                let page = |versions: Vec<_>| -> Page {
                    let entry = |version: CommentVersion| (version.version.into(), format!("{version:?}"));
                    versions.into_iter().map(entry).collect()
                };
                return Ok((page(found), page(expected)));
            }
        };
        Ok((of_comments(found), of_comments(expected)))
    }

    fn compare_all<S: ContentPorts>(&self, store: &S) -> Verdict {
        let authors: Vec<Id> = (0..USERS).map(|number| self.author(number)).collect();
        compare_comments(store, &self.model, &self.parents(), &authors)
    }
}

type Page = Vec<(u128, String)>;

fn body(text: u64) -> Arc<str> {
    format!(" text {text}\n").into()
}
