//! Random histories of several authors and readers at once. What stays put must be met by every walk; what came and
//! went must agree with the log, once all is quiet.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::feeds::{NewPost, Post, WriteOutcome};
use kinfolk_core::graph::{EdgeAction, EdgeCommand};
use kinfolk_core::{Clock, EdgeKind, Frontier, Id, Result, Timestamp};

use crate::StoreFactory;
use crate::model::Model;
use crate::model::inboxes::{check_inbox, inbox_and_log, settled_inbox};
use crate::model::suggestions::locked;
use crate::ports::ContentPorts;
use crate::random::Random;
use crate::random::answers::Attempt;
use crate::random::compare::{ENTRIES_MAX, Verdict, answer, equal, walk_posts};
use crate::random::shared::{Rounds, Shared};
use crate::random::unsettled::TimeoutFault;
use crate::threads::{at_once, block_on};
use crate::users::edge;
use crate::writes::write_with_positions;

/// The readers, who follow the steady authors all the time.
const READERS: [u64; 2] = [0, 1];
/// Authors who are followed all the time, by more or fewer others.
const STEADY: [u64; 2] = [2, 3];
/// Authors that the first reader follows for a while, again and again.
const FLEETING: [u64; 2] = [4, 5];
/// Users who follow the steady authors for a while, so that these cross the threshold.
const FANS: [u64; 2] = [6, 7];
const USERS: u64 = 8;
const STEPS: u64 = 20;
const FIRST_POSTS: u64 = 12;

/// Setting up is tried so often.
const ATTEMPTS: usize = 1_000;

const WHAT: &str = "concurrent feeds";

/// Runs `rounds` histories, each on a fresh store: threads post, delete, follow and unfollow while others walk feeds.
/// Panics if a walk misses or repeats what was there all the time or shows what was gone before, or if in the end a feed
/// is not what the log says, or at any time an inbox. Operations may be refused, and writes may have an unknown outcome.
pub fn concurrent_feeds<S: ContentPorts>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    Rounds { what: WHAT, count: rounds, seed }.run(make, run);
}

/// As [`concurrent_feeds`], with connections in front of the store that get lost.
pub fn concurrent_feeds_with_timeouts<S: ContentPorts>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    Rounds { what: WHAT, count: rounds, seed }.run_with_timeouts(make, None, run);
}

/// As [`concurrent_feeds_with_timeouts`], with a mistake in front of the store.
pub fn concurrent_feeds_with_fault<S: ContentPorts>(
    make: StoreFactory<'_, S>,
    fault: TimeoutFault,
    rounds: u32,
    seed: u64,
) {
    Rounds { what: WHAT, count: rounds, seed }.run_with_timeouts(make, Some(fault), run);
}

/// What is known of posts.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Of steady authors: visible, and never deleted.
    stay: Vec<Post>,
    /// Visibly deleted.
    gone: BTreeSet<Id>,
    /// Acknowledged as new, of all authors.
    new: BTreeSet<Id>,
    /// How many were asked for.
    asked: u64,
    /// Posts that may or may not have been registered, by their payload, each with what was seen before.
    unknown: BTreeMap<Arc<str>, Frontier>,
    /// Who has made such posts.
    uncertain: BTreeSet<Id>,
    /// Posts that may or may not have been deleted, each with what was seen before.
    unknown_deletions: BTreeMap<Id, Frontier>,
}

struct History<S> {
    shared: Shared<S>,
    known: Mutex<Known>,
}

impl<S> Deref for History<S> {
    type Target = Shared<S>;

    fn deref(&self) -> &Shared<S> {
        &self.shared
    }
}

fn run<S: ContentPorts>(shared: Shared<S>, seed: u64, settle: &dyn Fn(&S)) -> Verdict {
    let history = History { shared, known: Mutex::default() };
    history.begin();
    at_once(6, |thread| {
        let random = Random::new(seed << 8 | thread as u64);
        match thread {
            0 | 1 => history.write_posts(random),
            2 => history.cross_the_threshold(random),
            3 => history.come_and_go(random),
            _ => history.walk(READERS[thread % 2], random),
        }
    });
    settle(&history.store);
    history.answers.require_enough();
    history.audit()
}

impl<S: ContentPorts> History<S> {
    fn begin(&self) {
        for reader in READERS {
            for author in STEADY {
                let mut attempts = (0..ATTEMPTS).map(|_| self.write(EdgeAction::Follow, reader, author));
                assert!(attempts.any(|attempt| matches!(attempt, Attempt::Done(()))), "no follow succeeds");
            }
            self.feed(reader, 1);
        }
        for step in 0..FIRST_POSTS {
            self.clock.advance(1);
            self.post(STEADY[(step % 2) as usize], 0, true);
            self.post(FLEETING[(step % 2) as usize], 0, false);
        }
    }

    fn write(&self, action: EdgeAction, from: u64, to: u64) -> Attempt<()> {
        let command = EdgeCommand { action, edge: edge(self.id_kind, from, to) };
        let written = write_with_positions(&self.store, EdgeKind::Follow, &[command], USERS as u32);
        match self.answers.write(written) {
            Attempt::Done((receipt, _)) => {
                self.saw(receipt.position);
                Attempt::Done(())
            }
            Attempt::Refused(error) => panic!("{command:?} failed: {error}"),
            Attempt::Unavailable => Attempt::Unavailable,
            Attempt::Unknown => Attempt::Unknown,
        }
    }

    /// Registers a post, and returns it if that was acknowledged.
    fn post(&self, author: u64, ago: u64, stays: bool) -> Option<Post> {
        let created_at =
            (ago > 0).then(|| Timestamp::from_millis(self.clock.now().millis().saturating_sub(ago)));
        let author = self.id(author);
        let payload: Arc<str> = {
            let mut known = locked(&self.known);
            known.asked += 1;
            known.asked.to_string().into()
        };
        let request = NewPost {
            id: None,
            author,
            created_at,
            payload: Some(Arc::clone(&payload)),
            idempotency_key: None,
        };
        let after = self.seen();
        match self.answers.write(block_on(self.store.register(request))) {
            Attempt::Done(posted) => {
                assert!(posted.is_new, "{posted:?} is new");
                self.saw(posted.position);
                let mut known = locked(&self.known);
                assert!(known.new.insert(posted.post.id), "{posted:?} has the id of another");
                if stays {
                    known.stay.push(posted.post.clone());
                }
                return Some(posted.post);
            }
            Attempt::Refused(error) => panic!("a post failed: {error}"),
            Attempt::Unavailable => {}
            Attempt::Unknown => {
                let mut known = locked(&self.known);
                known.unknown.insert(payload, after);
                known.uncertain.insert(author);
            }
        }
        None
    }

    fn write_posts(&self, mut random: Random) {
        for _ in 0..STEPS {
            self.clock.advance(random.below(2));
            let author = STEADY[random.below(2) as usize];
            let stays = random.below(2) == 0;
            let post = self.post(author, random.below(3) * random.below(FIRST_POSTS), stays);
            post.filter(|_| !stays).into_iter().for_each(|post| self.delete(&post));
        }
    }

    fn delete(&self, post: &Post) {
        let after = self.seen();
        match self.answers.write(block_on(self.store.delete_post(post.id))) {
            Attempt::Done(WriteOutcome { position, changed }) => {
                assert!(changed, "{post:?} was there");
                self.saw(position);
                locked(&self.known).gone.insert(post.id);
            }
            Attempt::Refused(error) => panic!("the deletion of {post:?} failed: {error}"),
            Attempt::Unavailable => {}
            Attempt::Unknown => _ = locked(&self.known).unknown_deletions.insert(post.id, after),
        }
    }

    fn cross_the_threshold(&self, mut random: Random) {
        for _ in 0..STEPS {
            let (fan, author) = (FANS[random.below(2) as usize], STEADY[random.below(2) as usize]);
            let action = if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
            self.write(action, fan, author);
            // So that there is one for each state, however the threads come to run.
            self.post(author, 0, true);
        }
    }

    /// The only one that changes these edges: what it did counts in the next page, unless the outcome of an earlier change is
    /// unknown.
    fn come_and_go(&self, mut random: Random) {
        let (reader, mut follows) = (READERS[0], [Some(false); FLEETING.len()]);
        for _ in 0..STEPS / 2 {
            let index = random.below(2) as usize;
            let author = FLEETING[index];
            for action in [EdgeAction::Follow, EdgeAction::Unfollow] {
                match self.write(action, reader, author) {
                    Attempt::Done(()) => {
                        follows[index] = follows[index].and(Some(action == EdgeAction::Follow));
                    }
                    Attempt::Unknown => follows[index] = None,
                    Attempt::Refused(_) | Attempt::Unavailable => {}
                }
                let ago = random.below(FIRST_POSTS);
                let post = (action == EdgeAction::Follow).then(|| self.post(author, ago, false)).flatten();
                let limit = 1 + random.below(5) as usize;
                if let Some(follows) = follows[index] {
                    self.assert_shown(author, (follows, post), limit);
                }
            }
        }
    }

    /// The first reader's feed has the posts of a fleeting author just if the reader follows it.
    fn assert_shown(&self, author: u64, (follows, post): (bool, Option<Post>), limit: usize) {
        let id = self.id(author);
        let Some(own) = self.answers.read(self.posts_of(id)) else { return };
        let Some(walked) = self.feed(READERS[0], limit) else { return };
        let shown: BTreeSet<Id> =
            walked.iter().filter(|post| post.author == id).map(|post| post.id).collect();
        assert!(post.is_none_or(|post| own.contains(&post.id)), "the newest post is not among {own:?}");
        // A post of unknown outcome may have come in between.
        let is_whole = shown == own || own.is_subset(&shown) && locked(&self.known).uncertain.contains(&id);
        let is_right = if follows { is_whole } else { shown.is_empty() };
        assert!(is_right, "of {own:?} {shown:?} are shown, where it is {follows} that {id} is followed");
    }

    fn posts_of(&self, author: Id) -> Result<BTreeSet<Id>> {
        let posts = block_on(self.reader().posts_by(author, None, ENTRIES_MAX))?;
        Ok(posts.iter().map(|post| post.id).collect())
    }

    fn feed(&self, of: u64, page_limit: usize) -> Option<Vec<Post>> {
        let of = self.id(of);
        let read = |after| block_on(self.reader().feed(of, after, page_limit));
        self.answers.walk(Post::key, page_limit, read)
    }

    fn walk(&self, reader: u64, mut random: Random) {
        for _ in 0..STEPS {
            let before = locked(&self.known).clone();
            self.check_inbox(self.id(reader));
            let Some(walked) = self.feed(reader, 1 + random.below(8) as usize) else { continue };
            assert!(walked.is_sorted_by(|a, b| a.key() < b.key()), "out of order or twice: {walked:?}");
            let met: BTreeSet<Id> = walked.iter().map(|post| post.id).collect();
            for post in &before.stay {
                assert!(
                    met.contains(&post.id),
                    "{post:?} was there all the time, but the walk met {walked:?}"
                );
            }
            let gone: Vec<_> = met.intersection(&before.gone).collect();
            assert!(gone.is_empty(), "{gone:?} were gone, but the walk met {walked:?}");
        }
    }

    fn check_inbox(&self, of: Id) {
        let Some(Some((inbox, model))) = self.answers.read(inbox_and_log(&self.store, of)) else { return };
        check_inbox(&model, of, &inbox).unwrap_or_else(|wrong| panic!("{wrong}"));
    }

    /// Once all is quiet: feeds and lists agree with the log, which contains every post once.
    fn audit(&self) -> Verdict {
        READERS.iter().try_for_each(|&reader| settled_inbox(&self.store, self.id(reader)).map(drop))?;
        let changes = answer("changes", self.reader().whole_log())?;
        audit_posts(&locked(&self.known), &changes)?;
        let model = Model::replay(changes);
        for number in 0..USERS {
            let of = self.id(number);
            for limit in [1, 3, ENTRIES_MAX] {
                let what = || format!("the feed of user {number} in pages of {limit}");
                let read = |after| answer("feed", self.reader().feed(of, after, limit));
                equal(what, &walk_posts(limit, read)?, &model.feed(of, None, usize::MAX))?;
            }
            let found = answer("posts_by", self.reader().posts_by(of, None, ENTRIES_MAX))?;
            equal(|| format!("the posts of user {number}"), &found, &model.posts_by(of, None, usize::MAX))?;
        }
        let ids: Vec<Id> = model.posts.keys().copied().collect();
        let expected: Vec<_> = ids.iter().map(|&id| model.post(id)).collect();
        equal(|| "all posts".to_owned(), &answer("posts", self.reader().posts(&ids))?, &expected)
    }
}

/// The log contains every acknowledged post and deletion once; and of others only where the outcome is unknown, once at
/// most and not before they were asked for.
fn audit_posts(known: &Known, changes: &[Change]) -> Verdict {
    let mut missing: BTreeSet<(Id, bool)> = known.new.iter().map(|&id| (id, false)).collect();
    missing.extend(known.gone.iter().map(|&id| (id, true)));
    let (mut unknown, mut deletions) = (known.unknown.clone(), known.unknown_deletions.clone());
    for Change { position, body, .. } in changes {
        let after = match body {
            ChangeBody::Posted { post, .. } if missing.remove(&(post.id, false)) => continue,
            ChangeBody::PostDeleted { id, .. } if missing.remove(&(*id, true)) => continue,
            ChangeBody::Posted { post, .. } => post.payload.as_ref().and_then(|text| unknown.remove(text)),
            ChangeBody::PostDeleted { id, .. } => deletions.remove(id),
            _ => continue,
        };
        if after.is_none_or(|after| after.covers(*position)) {
            return Err(format!("nobody made {body:?} at {position}, or it was made twice"));
        }
    }
    equal(|| "posts and deletions that the log lacks".to_owned(), &missing, &BTreeSet::new())
}
