//! Random histories of posts, follows and feeds, every page of which is compared with the model, and every inbox with its
//! promises: a state machine whose steps are made up beforehand, so that a failure can be shrunk and repeated.

use std::collections::BTreeSet;
use std::sync::Arc;

use kinfolk_core::feeds::{NewPost, Post, PostKey, PostWritten};
use kinfolk_core::graph::{EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, Error, Id, IdKind, Result, Timestamp};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};

use crate::clock::SimulatedClock;
use crate::model::Model;
use crate::model::inboxes::{check_inbox, settled_inbox};
use crate::model::posts::{AHEAD_MS_MAX, RequestState, higher};
use crate::ports::ContentPorts;
use crate::random::compare::{ENTRIES_MAX, KINDS, Verdict, answer, equal, walk_posts};
use crate::random::history::{run_random, run_restarts};
use crate::seen::Seen;
use crate::threads::block_on;
use crate::users::START;
use crate::users::{edge, user};
use crate::writes::requests;
use crate::{Reopen, StoreFactory};

/// Few users, and fewer who are followed a lot, so that the threshold is crossed often.
const USERS: u64 = 8;
const AUTHORS: u64 = 4;
/// Posts that are named by their clients have ids from here on.
const FIRST_POST: u64 = 1_000;
const STEPS_MAX: usize = 60;
/// How many walks may be open at a time.
const WALKS: usize = 3;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Keys are kept for at least a week; older requests are not retried here.
const KEY_AGE_MS_MAX: u64 = 6 * DAY_MS;

/// When a post is made.
#[derive(Clone, Copy, Debug)]
enum Time {
    Unsaid,
    Ago(u64),
    Ahead(u64),
    /// In the millisecond of a post that is there, counted from the newest.
    With(usize),
}

/// What names a post.
#[derive(Clone, Copy, Debug)]
enum Name {
    /// The store makes an id.
    Made,
    /// The client gives one.
    Given(u64),
    /// The store makes an id, and a key names the request.
    Key(u64),
    /// The client gives an id, and a key besides.
    Both { id: u64, key: u64 },
    /// The client gives an id that the store would make soon.
    Taken(u64),
}

/// What one step of a history does.
#[derive(Clone, Debug)]
enum Step {
    Write {
        kind: EdgeKind,
        commands: Vec<(EdgeAction, u64, u64)>,
    },
    Post {
        author: u64,
        time: Time,
        name: Name,
        payload: Option<u64>,
    },
    /// A request is repeated, counted from the newest.
    Repeat(usize),
    /// A post is deleted, counted from the newest that was registered.
    Delete(usize),
    /// The first page of a feed.
    Read {
        of: u64,
        limit: usize,
    },
    /// The next page of a walk that is open, or the first of a new one.
    Walk {
        slot: usize,
        of: u64,
        limit: usize,
    },
    /// An inbox is forgotten.
    Forget {
        of: u64,
    },
    Advance(u64),
    TurnBack(u64),
    /// So many posts are made at once, and while they are being delivered the store ends.
    Restart(usize),
}

/// Runs `cases` random histories of posts and feeds against a store and the model side by side, and panics with the
/// shortest that it finds for which any page differs.
///
/// With `reopen`, histories contain restarts; it decides whether the store is closed before or just dropped. The
/// generator starts from `seed`, so that a run can be repeated; the message of a failure names it.
pub fn feed_histories<S: ContentPorts>(
    make: StoreFactory<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    cases: u32,
    seed: u64,
) {
    run_random("feed histories", vec(step(), 1..=STEPS_MAX), (cases, seed), |id_kind, steps| {
        run_history(make, reopen, id_kind, steps)
    });
}

/// Runs one history that has everything in it many times, with a restart after another step each time, and once with a
/// restart after every step. Panics if any page differs from the model's.
pub fn feed_restarts<S: ContentPorts>(make: StoreFactory<'_, S>, reopen: Reopen<'_, S>) {
    run_restarts(&script(), &Step::Restart(0), |id_kind, steps| {
        run_history(make, Some(reopen), id_kind, steps)
    });
}

/// User 7 reads all the time, 6 in the end; 0 is pushed, then pulled, then pushed again; 1 is followed late.
fn script() -> Vec<Step> {
    let write = |action, from, to| Step::Write { kind: EdgeKind::Follow, commands: vec![(action, from, to)] };
    let follow = |from, to| write(EdgeAction::Follow, from, to);
    let unfollow = |from, to| write(EdgeAction::Unfollow, from, to);
    let post = |author, time, name| Step::Post { author, time, name, payload: None };
    let read = Step::Read { of: 7, limit: 3 };
    let walk = Step::Walk { slot: 0, of: 7, limit: 2 };
    let mut steps = vec![follow(7, 0), follow(6, 0), follow(7, 2), read.clone()];
    for number in 0..3 {
        steps.extend([
            Step::Advance(1),
            post(0, Time::Unsaid, Name::Made),
            post(1, Time::Unsaid, Name::Given(number)),
        ]);
    }
    steps.extend([
        walk.clone(),
        follow(5, 0),
        post(0, Time::Unsaid, Name::Key(1)),
        Step::Repeat(0),
        read.clone(),
    ]);
    steps.extend([post(0, Time::Ago(2), Name::Made), walk.clone(), post(2, Time::With(3), Name::Made)]);
    steps.extend([
        unfollow(5, 0),
        post(0, Time::Unsaid, Name::Made),
        follow(7, 1),
        read.clone(),
        Step::Delete(1),
    ]);
    steps.extend([walk.clone(), post(1, Time::Ago(DAY_MS), Name::Key(2)), Step::Delete(4), Step::Repeat(1)]);
    steps.extend([
        unfollow(7, 0),
        read.clone(),
        Step::TurnBack(DAY_MS),
        post(2, Time::Unsaid, Name::Made),
        walk,
    ]);
    steps.extend([follow(7, 0), read, Step::Advance(40 * DAY_MS), post(0, Time::Unsaid, Name::Made)]);
    steps
}

fn step() -> impl Strategy<Value = Step> {
    let action = || prop_oneof![3 => Just(EdgeAction::Follow), 2 => Just(EdgeAction::Unfollow)];
    // Mostly towards the few authors; the first user is drawn from the others.
    let to = || prop_oneof![4 => 0..AUTHORS, 1 => 0..USERS];
    let command = move || {
        (action(), to(), 1..USERS).prop_map(|(action, to, distance)| (action, (to + distance) % USERS, to))
    };
    let time = prop_oneof![
        4 => Just(Time::Unsaid),
        2 => (0..6_u64).prop_map(Time::Ago),
        1 => (0..2 * DAY_MS).prop_map(Time::Ago),
        1 => (1..=AHEAD_MS_MAX).prop_map(Time::Ahead),
        2 => (0..12_usize).prop_map(Time::With),
    ];
    let name = prop_oneof![
        3 => Just(Name::Made),
        2 => (0..40_u64).prop_map(Name::Given),
        1 => (0..6_u64).prop_map(Name::Key),
        1 => (0..40_u64, 0..6_u64).prop_map(|(id, key)| Name::Both { id, key }),
        1 => (1..4_u64).prop_map(Name::Taken),
    ];
    let payload = prop_oneof![3 => Just(None), 1 => (0..2_u64).prop_map(Some)];
    let post = (to(), time, name, payload).prop_map(|(author, time, name, payload)| Step::Post {
        author,
        time,
        name,
        payload,
    });
    let write = |kind| move |commands| Step::Write { kind, commands };
    let read = (0..USERS, 1..8_usize).prop_map(|(of, limit)| Step::Read { of, limit });
    let walk = (0..WALKS, 0..USERS, 1..5_usize).prop_map(|(slot, of, limit)| Step::Walk { slot, of, limit });
    prop_oneof![
        17 => vec(command(), 1).prop_map(write(KINDS[0])),
        2 => vec(command(), 2..6).prop_map(write(KINDS[0])),
        1 => vec(command(), 1..4).prop_map(write(KINDS[1])),
        24 => post,
        2 => (0..20_usize).prop_map(Step::Repeat),
        5 => (0..12_usize).prop_map(Step::Delete),
        10 => read,
        12 => walk,
        1 => (0..USERS).prop_map(|of| Step::Forget { of }),
        6 => (1..3_u64).prop_map(Step::Advance),
        1 => (1..40 * DAY_MS).prop_map(Step::Advance),
        1 => (1..DAY_MS).prop_map(Step::TurnBack),
        3 => (0..8_usize).prop_map(Step::Restart),
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
    for (step, number) in steps.iter().zip(1..) {
        let stepped = expected.step(&store, step);
        if let (Step::Restart(_), Some(reopen)) = (step, reopen) {
            store = reopen(store);
        }
        let verdict = stepped.and_then(|()| expected.look(&store, number % USERS));
        verdict.map_err(|wrong| format!("step {number}, {step:?}: {wrong}"))?;
    }
    expected.compare_all(&store)
}

/// A request that was fulfilled.
#[derive(Clone, Debug)]
struct Fulfilled {
    request: NewPost,
    id: Id,
    at: Timestamp,
}

/// What is known beside the store: the model, and where the walks are.
struct Expected {
    id_kind: IdKind,
    clock: Arc<SimulatedClock>,
    latest: Timestamp,
    model: Model,
    request_state: RequestState,
    fulfilled: Vec<Fulfilled>,
    walks: [Option<Walk>; WALKS],
    /// Who has ever read: a restart may bring an inbox back that was forgotten.
    readers: BTreeSet<u64>,
}

/// A walk that is open: whose feed, in pages of which length, and where it is.
#[derive(Clone, Copy, Debug)]
struct Walk {
    of: u64,
    limit: usize,
    after: Option<PostKey>,
}

impl Expected {
    fn new(id_kind: IdKind, clock: Arc<SimulatedClock>) -> Self {
        Self {
            id_kind,
            latest: clock.now(),
            clock,
            model: Model::default(),
            request_state: RequestState::default(),
            fulfilled: Vec::new(),
            walks: [None; WALKS],
            readers: BTreeSet::new(),
        }
    }

    fn step<S: ContentPorts>(&mut self, store: &S, step: &Step) -> Verdict {
        match step {
            Step::Write { kind, commands } => self.write(store, *kind, commands),
            Step::Post { author, time, name, payload } => {
                let mut request = self.post_request(*author, *time, *name);
                request.payload = payload.map(|number| format!(" {number} ").into());
                self.register(store, request)
            }
            Step::Repeat(back) => self.repeat(store, *back),
            Step::Delete(back) => self.delete(store, *back),
            Step::Read { of, limit } => {
                self.page(store, Walk { of: *of, limit: *limit, after: None })?;
                Ok(())
            }
            Step::Walk { slot, of, limit } => {
                let walk = self.walks[*slot].unwrap_or(Walk { of: *of, limit: *limit, after: None });
                let page = self.page(store, walk)?;
                let last = page.last().filter(|_| page.len() == walk.limit).map(Post::key);
                self.walks[*slot] = last.map(|last| Walk { after: Some(last), ..walk });
                Ok(())
            }
            Step::Forget { of } => {
                let of = user(self.id_kind, *of);
                answer("drop_inbox", store.drop_inbox(of))?;
                equal(|| format!("the inbox of {of}"), &answer("inbox", self.seen(store).inbox(of))?, &None)
            }
            Step::Advance(millis) => {
                self.clock.advance(*millis);
                self.latest = self.latest.max(self.clock.now());
                Ok(())
            }
            Step::TurnBack(millis) => {
                self.clock.turn_back(*millis);
                Ok(())
            }
            Step::Restart(posts) => (0..*posts as u64).try_for_each(|number| {
                let request = self.post_request(number % AUTHORS, Time::Unsaid, Name::Made);
                self.register(store, request)
            }),
        }
    }

    fn write<S: ContentPorts>(
        &mut self,
        store: &S,
        kind: EdgeKind,
        commands: &[(EdgeAction, u64, u64)],
    ) -> Verdict {
        let command = |&(action, from, to): &_| EdgeCommand { action, edge: edge(self.id_kind, from, to) };
        let commands: Vec<EdgeCommand> = commands.iter().map(command).collect();
        let requests: Vec<WriteRequest> =
            requests(kind, &commands, USERS as u32).into_iter().map(|(request, _)| request).collect();
        let expected = self.model.write_all(&requests, self.clock.now());
        let found = block_on(store.write(requests));
        let comparable = |results: &[Result<Receipt>]| results.iter().map(comparable).collect::<Vec<_>>();
        equal(|| "receipts".to_owned(), &comparable(&found), &comparable(&expected))
    }

    /// The store, whose reads show at least what the model has.
    fn seen<'a, S>(&self, store: &'a S) -> Seen<'a, S> {
        Seen::new(store, self.model.frontier())
    }

    fn post_request(&self, author: u64, time: Time, name: Name) -> NewPost {
        let now = self.clock.now();
        let created_at = match time {
            Time::Unsaid => None,
            Time::Ago(millis) => Some(Timestamp::from_millis(now.millis().saturating_sub(millis))),
            Time::Ahead(millis) => Some(now.plus_millis(millis)),
            // Not if that is ahead by now.
            Time::With(back) => self.posts_back(back).map(|post| post.created_at).filter(|&at| at <= now),
        };
        let input = |number| user(self.id_kind, FIRST_POST + number);
        let key_of = |number: u64| Arc::from(format!("key {number}"));
        let (id, key) = match name {
            Name::Made => (None, None),
            Name::Given(number) => (Some(input(number)), None),
            Name::Key(number) => (None, Some(key_of(number))),
            Name::Both { id, key } => (Some(input(id)), Some(key_of(key))),
            Name::Taken(distance) => {
                (self.request_state.generated.map(|generated| higher(generated, distance)), None)
            }
        };
        let author = user(self.id_kind, author);
        NewPost { id, author, created_at, payload: None, idempotency_key: key }
    }

    /// A post that is there, counted from the newest.
    fn posts_back(&self, back: usize) -> Option<&Post> {
        let Fulfilled { id, .. } = self.fulfilled.iter().rev().nth(back)?;
        self.model.posts.get(id).map(|registered| &registered.post)
    }

    fn repeat<S: ContentPorts>(&mut self, store: &S, back: usize) -> Verdict {
        let Some(Fulfilled { request, .. }) = self.fulfilled.iter().rev().nth(back).cloned() else {
            return Ok(());
        };
        self.register(store, request)
    }

    fn register<S: ContentPorts>(&mut self, store: &S, request: NewPost) -> Verdict {
        if self.may_be_forgotten(&request) {
            return Ok(());
        }
        let found = block_on(store.register(request.clone()));
        let generated = self.is_id_generated(&request, &found)?;
        let expected = self.model.register(&mut self.request_state, &request, generated, self.clock.now());
        equal(|| format!("answer to {request:?}"), &comparable(&found), &comparable(&expected))?;
        if let Ok(PostWritten { post, is_new: true, .. }) = expected {
            self.fulfilled.push(Fulfilled { request, id: post.id, at: self.latest });
        }
        Ok(())
    }

    /// Whether a request has a key that a store need not know any more.
    fn may_be_forgotten(&self, request: &NewPost) -> bool {
        let same_key = |other: &&Fulfilled| {
            (other.request.author, &other.request.idempotency_key)
                == (request.author, &request.idempotency_key)
        };
        let first = self.fulfilled.iter().find(same_key).filter(|_| request.idempotency_key.is_some());
        first.is_some_and(|first| self.latest.millis() - first.at.millis() > KEY_AGE_MS_MAX)
    }

    /// The id that the store made, which the model cannot know; it must be a higher one than all before.
    fn is_id_generated(
        &self,
        request: &NewPost,
        found: &Result<PostWritten>,
    ) -> std::result::Result<Id, String> {
        let unused = user(self.id_kind, 0);
        let Ok(PostWritten { post, is_new: true, .. }) = found else { return Ok(unused) };
        let rises = post.id.kind() == self.id_kind
            && self.request_state.generated.is_none_or(|generated| post.id > generated);
        match request.id {
            None if !rises || self.model.posts.contains_key(&post.id) => {
                Err(format!("{} was made as an id after {:?}", post.id, self.request_state.generated))
            }
            _ => Ok(post.id),
        }
    }

    fn delete<S: ContentPorts>(&mut self, store: &S, back: usize) -> Verdict {
        let never = user(self.id_kind, FIRST_POST - 1);
        let id = self.fulfilled.iter().rev().nth(back).map_or(never, |fulfilled| fulfilled.id);
        let expected = self.model.delete_post(id, self.clock.now());
        let found = block_on(store.delete_post(id));
        equal(|| format!("deletion of {id}"), &comparable(&found), &comparable(&expected))
    }

    /// A page of a feed, which must be the model's.
    fn page<S: ContentPorts>(&mut self, store: &S, walk: Walk) -> std::result::Result<Vec<Post>, String> {
        let of = user(self.id_kind, walk.of);
        self.readers.insert(walk.of);
        let found = answer("feed", self.seen(store).feed(of, walk.after, walk.limit))?;
        let expected = self.model.feed(of, walk.after, walk.limit);
        equal(|| format!("{walk:?}"), &found, &expected)?;
        Ok(found)
    }

    /// The inbox of a user, if there is one, must be right however far deliveries have come.
    fn look<S: ContentPorts>(&self, store: &S, number: u64) -> Verdict {
        let of = user(self.id_kind, number);
        match answer("inbox", self.seen(store).inbox(of))? {
            None => Ok(()),
            Some(inbox) if !self.readers.contains(&number) => {
                Err(format!("user {number} has not read, but has {inbox:?}"))
            }
            Some(inbox) => check_inbox(&self.model, of, &inbox),
        }
    }

    /// In the end: every feed and every list, whole and in small pages, every post, and the log.
    fn compare_all<S: ContentPorts>(&self, store: &S) -> Verdict {
        for number in 0..USERS {
            let of = user(self.id_kind, number);
            self.look(store, number)?;
            settled_inbox(store, of)?;
            let (feed, own) =
                (self.model.feed(of, None, usize::MAX), self.model.posts_by(of, None, usize::MAX));
            for limit in [1 + number as usize % 4, ENTRIES_MAX] {
                let found =
                    walk_posts(limit, |after| answer("feed", self.seen(store).feed(of, after, limit)))?;
                equal(|| format!("the feed of user {number} in pages of {limit}"), &found, &feed)?;
                let found = walk_posts(limit, |after| {
                    answer("posts_by", self.seen(store).posts_by(of, after, limit))
                })?;
                equal(|| format!("the posts of user {number} in pages of {limit}"), &found, &own)?;
            }
        }
        let ids: Vec<Id> =
            self.model.posts.keys().copied().chain([user(self.id_kind, FIRST_POST - 1)]).collect();
        let expected: Vec<_> = ids.iter().map(|&id| self.model.post(id)).collect();
        equal(|| "all posts".to_owned(), &answer("posts", self.seen(store).posts(&ids))?, &expected)?;
        let changes = answer("changes", self.seen(store).whole_log())?;
        equal(|| "the log".to_owned(), &changes, &self.model.changes(START, usize::MAX))
    }
}

/// Errors have no equality, but their text holds all that they say.
fn comparable<T: Clone>(result: &Result<T>) -> std::result::Result<T, String> {
    result.clone().map_err(|error: Error| error.to_string())
}
