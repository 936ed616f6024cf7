//! Random histories of several authors and readers at once. What stays put must be met by every walk; what came and
//! went must be as the log tells it, once all is quiet.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::feeds::{NewPost, Post};
use kinfolk_core::graph::{EdgeAction, EdgeCommand};
use kinfolk_core::{Clock, EdgeKind, Frontier, Id, IdKind, Position, Timestamp};

use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::model::Model;
use crate::model::inboxes::{settled_inbox, sound_inbox};
use crate::model::suggestions::locked;
use crate::ports::ContentPorts;
use crate::random::Random;
use crate::random::compare::{ENTRIES_MAX, Verdict, answer, equal, walk_posts};
use crate::seen::Seen;
use crate::threads::{at_once, block_on};
use crate::users::{edge, user};
use crate::writes::write_with_positions;

/// The readers, who follow the steady authors all the time.
const READERS: [u64; 2] = [0, 1];
/// Authors who are followed all the time, by more or fewer others.
const STEADY: [u64; 2] = [2, 3];
/// Authors whom the first reader follows for a while, again and again.
const FLEETING: [u64; 2] = [4, 5];
/// Users who follow the steady authors for a while, so that these cross the threshold.
const FANS: [u64; 2] = [6, 7];
const USERS: u64 = 8;
const STEPS: u64 = 20;
const FIRST_POSTS: u64 = 12;

/// Runs `rounds` histories, each on a fresh store: threads post, delete, follow and unfollow while others walk feeds.
/// Panics if a walk misses or repeats what was there all the time or shows what was gone before, or if in the end a feed
/// is not what the log says, or at any time an inbox.
pub fn concurrent_feeds<S: ContentPorts>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    for round in 0..u64::from(rounds) {
        let id_kind = if round % 2 == 0 { IdKind::Integer } else { IdKind::Uuid };
        let clock = Arc::new(SimulatedClock::default());
        let store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
        let history = History { store, seen: Mutex::default(), clock, id_kind, known: Mutex::default() };
        history.begin();
        at_once(6, |thread| {
            let random = Random::new((seed ^ round) << 8 | thread as u64);
            match thread {
                0 | 1 => history.write_posts(random),
                2 => history.cross_the_threshold(random),
                3 => history.come_and_go(random),
                _ => history.walk(READERS[thread % 2], random),
            }
        });
        history.audit().unwrap_or_else(|wrong| {
            panic!("concurrent feeds (seed {seed}, round {round}, {} ids): {wrong}", id_kind.name())
        });
    }
}

/// What is known of the posts of steady authors.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Visible, and never deleted.
    stay: Vec<Post>,
    /// Visibly deleted.
    gone: BTreeSet<Id>,
    /// How many were new, of all authors.
    new: usize,
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
    fn begin(&self) {
        for reader in READERS {
            STEADY.iter().for_each(|&author| self.write(&[(EdgeAction::Follow, reader, author)]));
            self.feed(reader, 1);
        }
        for step in 0..FIRST_POSTS {
            self.clock.advance(1);
            self.post(STEADY[(step % 2) as usize], 0, true);
            self.post(FLEETING[(step % 2) as usize], 0, false);
        }
    }

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

    fn write(&self, commands: &[(EdgeAction, u64, u64)]) {
        let command = |&(action, from, to): &_| EdgeCommand { action, edge: edge(self.id_kind, from, to) };
        let commands: Vec<EdgeCommand> = commands.iter().map(command).collect();
        let written = write_with_positions(&self.store, EdgeKind::Follow, &commands, USERS as u32);
        written.unwrap().1.into_iter().for_each(|position| self.saw(position));
    }

    fn post(&self, author: u64, ago: u64, stays: bool) -> Post {
        let created_at =
            (ago > 0).then(|| Timestamp::from_millis(self.clock.now().millis().saturating_sub(ago)));
        let author = self.id(author);
        let wish = NewPost { id: None, author, created_at, payload: None, idempotency_key: None };
        let posted = block_on(self.store.register(wish)).unwrap();
        assert!(posted.is_new, "{posted:?} is new");
        self.saw(posted.position);
        let mut known = locked(&self.known);
        known.new += 1;
        if stays {
            known.stay.push(posted.post.clone());
        }
        posted.post
    }

    fn write_posts(&self, mut random: Random) {
        for _ in 0..STEPS {
            self.clock.advance(random.below(2));
            let author = STEADY[random.below(2) as usize];
            let stays = random.below(2) == 0;
            let post = self.post(author, random.below(3) * random.below(FIRST_POSTS), stays);
            if !stays {
                let removed = block_on(self.store.delete_post(post.id)).unwrap();
                assert!(removed.changed, "{post:?} was there");
                self.saw(removed.position);
                locked(&self.known).gone.insert(post.id);
            }
        }
    }

    fn cross_the_threshold(&self, mut random: Random) {
        for _ in 0..STEPS {
            let (fan, author) = (FANS[random.below(2) as usize], STEADY[random.below(2) as usize]);
            let action = if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
            self.write(&[(action, fan, author)]);
            // So that there is one for each state, however the threads come to run.
            self.post(author, 0, true);
        }
    }

    /// The only one that changes these edges: what it did counts in the next page.
    fn come_and_go(&self, mut random: Random) {
        let reader = READERS[0];
        for _ in 0..STEPS / 2 {
            let author = FLEETING[random.below(2) as usize];
            self.write(&[(EdgeAction::Follow, reader, author)]);
            let post = self.post(author, random.below(FIRST_POSTS), false);
            let own: BTreeSet<Id> = self.posts_of(author);
            let shown = |walked: &[Post]| -> BTreeSet<Id> {
                walked.iter().filter(|post| post.author == self.id(author)).map(|post| post.id).collect()
            };
            let found = shown(&self.feed(reader, 1 + random.below(5) as usize));
            assert!(found == own && own.contains(&post.id), "after a follow {found:?}, not {own:?}");
            self.write(&[(EdgeAction::Unfollow, reader, author)]);
            let found = shown(&self.feed(reader, 1 + random.below(5) as usize));
            assert!(found.is_empty(), "after an unfollow {found:?}");
        }
    }

    fn posts_of(&self, author: u64) -> BTreeSet<Id> {
        let posts = block_on(self.reader().posts_by(self.id(author), None, ENTRIES_MAX)).unwrap();
        posts.iter().map(|post| post.id).collect()
    }

    fn feed(&self, of: u64, page_limit: usize) -> Vec<Post> {
        let of = self.id(of);
        let read = |after| answer("feed", self.reader().feed(of, after, page_limit));
        walk_posts(page_limit, read).unwrap_or_else(|wrong| panic!("the feed of {of}: {wrong}"))
    }

    fn walk(&self, reader: u64, mut random: Random) {
        for _ in 0..STEPS {
            let before = locked(&self.known).clone();
            let walked = self.feed(reader, 1 + random.below(8) as usize);
            assert!(walked.is_sorted_by(|a, b| a.key() < b.key()), "out of order or twice: {walked:?}");
            let met: BTreeSet<Id> = walked.iter().map(|post| post.id).collect();
            for post in &before.stay {
                assert!(
                    met.contains(&post.id),
                    "{post:?} was there all the time, but the walk met {walked:?}"
                );
            }
            sound_inbox(&self.store, self.id(reader)).unwrap_or_else(|wrong| panic!("{wrong}"));
            let gone: Vec<_> = met.intersection(&before.gone).collect();
            assert!(gone.is_empty(), "{gone:?} were gone, but the walk met {walked:?}");
        }
    }

    /// Once all is quiet: feeds and lists are what the log says, and it tells of every post once.
    fn audit(&self) -> Verdict {
        READERS.iter().try_for_each(|&reader| settled_inbox(&self.store, self.id(reader)).map(drop))?;
        let changes = answer("changes", self.reader().whole_log())?;
        let posted = changes.iter().filter(|change| matches!(change.body, ChangeBody::Posted { .. })).count();
        equal(|| "posts in the log".to_owned(), &posted, &locked(&self.known).new)?;
        let model = Model::replay(changes);
        for number in 0..USERS {
            let of = self.id(number);
            for limit in [1, 3, ENTRIES_MAX] {
                let what = || format!("the feed of user {number} in pages of {limit}");
                equal(what, &self.feed(number, limit), &model.feed(of, None, usize::MAX))?;
            }
            let found = answer("posts_by", self.reader().posts_by(of, None, ENTRIES_MAX))?;
            equal(|| format!("the posts of user {number}"), &found, &model.posts_by(of, None, usize::MAX))?;
        }
        let ids: Vec<Id> = model.posts.keys().copied().collect();
        let expected: Vec<_> = ids.iter().map(|&id| model.post(id)).collect();
        equal(|| "all posts".to_owned(), &answer("posts", self.reader().posts(&ids))?, &expected)
    }
}
