//! Draws operations that make sense after what there is: over few users, posts and comments, so that everything is touched
//! again and again.

use kinfolk_core::Timestamp;

use super::history::History;
use super::model::{Comment, Model};
use super::operation::{NewComment, NewPost, Operation, Status};
use crate::faults::random::Random;
use crate::faults::workload::Pair;

/// Users 1 to …
pub const USERS: u64 = 14;
/// How many operations are submitted at once at most.
pub const ROUND_MAX: usize = 8;
/// The times of posts lie around this one; many have the same.
const BEGIN_MS: u64 = 1_767_225_600_000;
/// Replies are no deeper.
const DEPTH_MAX: u64 = 8;
/// No more comments than this are on one post before another is preferred.
const HOT: usize = 60;

pub struct Workload {
    random: Random,
    made: u64,
}

impl Workload {
    pub fn new(random: Random) -> Self {
        Self { random, made: 0 }
    }

    /// As [`Workload::new`], for a store that has others' data already: with keys and ids that they do not use.
    pub fn after(history: &History, random: Random) -> Self {
        // Of as many as were drawn for a round, one at least was submitted.
        Self { random, made: (history.submitted() * ROUND_MAX) as u64 }
    }

    /// Some operations that can be submitted at once: in whatever order they come, each has the same effect.
    pub fn round(&mut self, model: &Model) -> Vec<Operation> {
        let count = 1 + self.random.below(ROUND_MAX);
        let mut round: Vec<Operation> = Vec::new();
        for _ in 0..count {
            let operation = self.operation(model);
            if !round.iter().any(|other| other.conflicts_with(&operation)) {
                round.push(operation);
            }
        }
        round
    }

    /// An import of new and known pairs.
    pub fn import(&mut self, count: usize) -> Operation {
        let pairs = (0..count).map(|_| self.pair()).collect();
        Operation::Import { pairs, since: Timestamp::from_millis(BEGIN_MS).to_string() }
    }

    fn operation(&mut self, model: &Model) -> Operation {
        match self.random.below(40) {
            0..=6 => Operation::Follow(self.pair()),
            7..=10 => Operation::Unfollow(self.pair()),
            11..=14 => self.post(),
            15 => self.delete_post(model),
            16..=17 => self.lock(model),
            18..=23 => self.edit(model),
            24..=25 => self.withdraw(model, Status::Deleted),
            26 => self.withdraw(model, Status::Removed),
            27..=28 => self.withdraw(model, Status::Purged),
            _ => self.comment(model),
        }
    }

    fn pair(&mut self) -> Pair {
        let users = USERS as usize;
        let follower = self.random.below(users);
        let followee = (follower + 1 + self.random.below(users - 1)) % users;
        Pair { follower: follower as u64 + 1, followee: followee as u64 + 1 }
    }

    fn user(&mut self) -> u64 {
        1 + self.random.below(USERS as usize) as u64
    }

    fn post(&mut self) -> Operation {
        self.made += 1;
        // Some have ids, which do not rise with time; others get one. Times go back and meet.
        let has_id = self.random.once_in(2);
        let age_max = if self.random.once_in(8) { 4_000 } else { 40 };
        let age = self.random.below(age_max) as u64;
        Operation::Post(NewPost {
            id: has_id.then_some(self.made ^ 0x55),
            key: (!has_id).then(|| format!("post {}", self.made)),
            author: self.user(),
            created_at: Timestamp::from_millis(BEGIN_MS + self.made / 4 - age).to_string(),
            payload: self.text(),
        })
    }

    fn delete_post(&mut self, model: &Model) -> Operation {
        let which = self.random.below(model.posts.len().max(1));
        match model.posts.iter().nth(which) {
            // Also one that is deleted already.
            Some((&post, known)) => Operation::DeletePost { post, author: known.new.author },
            None => self.post(),
        }
    }

    /// One of the posts that are there, or none.
    fn present_post(&mut self, model: &Model) -> Option<u64> {
        let present: Vec<u64> =
            model.posts.iter().filter(|(_, post)| !post.deleted).map(|(&id, _)| id).collect();
        // The first ones get most comments.
        let among = if self.random.once_in(3) { present.len() } else { present.len().min(5) };
        (!present.is_empty()).then(|| present[self.random.below(among)])
    }

    fn lock(&mut self, model: &Model) -> Operation {
        match self.present_post(model) {
            // Most are unlocked again soon.
            Some(post) => Operation::Lock { post, locked: !model.posts[&post].locked },
            None => self.post(),
        }
    }

    fn comment(&mut self, model: &Model) -> Operation {
        let open = |post: &u64| !model.posts[post].locked && model.comment_thread(*post).count() < HOT;
        let Some(post) = self.present_post(model).filter(open) else { return self.post() };
        self.made += 1;
        let reply_to = self.random.once_in(2).then(|| self.answered(model, post)).flatten();
        let key = format!("comment {}", self.made);
        Operation::Comment(NewComment { post, author: self.user(), key, body: self.text(), reply_to })
    }

    /// A comment of a post that can be answered, if there is one.
    fn answered(&mut self, model: &Model, post: u64) -> Option<String> {
        let can_be = |comment: &Comment| comment.status == Status::Active && comment.depth < DEPTH_MAX;
        let all: Vec<&str> =
            model.comment_thread(post).filter(|(_, comment)| can_be(comment)).map(|(id, _)| id).collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len())].to_owned())
    }

    fn edit(&mut self, model: &Model) -> Operation {
        match self.known_comment(model) {
            Some((id, known)) if known.status == Status::Active => Operation::Edit {
                comment: id.to_owned(),
                author: known.new.author,
                version: known.versions.len(),
                body: self.text(),
            },
            _ => self.comment(model),
        }
    }

    /// Also of a comment that is withdrawn already.
    fn withdraw(&mut self, model: &Model, status: Status) -> Operation {
        match self.known_comment(model) {
            Some((id, known)) => Operation::Withdraw {
                comment: id.to_owned(),
                author: known.new.author,
                status,
                reason: (status == Status::Removed).then(|| self.text()),
            },
            None => self.comment(model),
        }
    }

    fn known_comment<'a>(&mut self, model: &'a Model) -> Option<(&'a String, &'a Comment)> {
        let count = model.comments.len();
        // Every other one is among the newest, which are in memory still.
        let from = if self.random.once_in(2) { count.saturating_sub(12) } else { 0 };
        (count > 0)
            .then(|| from + self.random.below(count - from))
            .and_then(|at| model.comments.iter().nth(at))
    }

    /// Letters that say nothing, so that nothing in them can be made shorter or come twice; and some of other alphabets.
    /// A few are longer than a sector of a disk.
    fn text(&mut self) -> String {
        const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        let more_max = if self.random.once_in(12) { 900 } else { 80 };
        let length = 24 + self.random.below(more_max);
        let text: String = (0..length).map(|_| char::from(LETTERS[self.random.below(64)])).collect();
        if self.random.once_in(4) { format!("{text} ü中\n\"😀") } else { text }
    }
}

#[test]
fn operations_of_a_round_do_not_depend_on_each_other() {
    let lock = |post| Operation::Lock { post, locked: true };
    let comment = |post, reply_to: Option<&str>| {
        let (key, body, reply_to) = (String::new(), String::new(), reply_to.map(str::to_owned));
        Operation::Comment(NewComment { post, author: 1, key, body, reply_to })
    };
    let purge = |comment: &str| Operation::Withdraw {
        comment: comment.to_owned(),
        author: 1,
        status: Status::Purged,
        reason: None,
    };
    assert!(lock(1).conflicts_with(&comment(1, None)) && comment(1, None).conflicts_with(&lock(1)));
    assert!(purge("a").conflicts_with(&comment(1, Some("a"))) && purge("a").conflicts_with(&purge("a")));
    assert!(!comment(1, Some("a")).conflicts_with(&comment(1, Some("a"))));
    assert!(!lock(1).conflicts_with(&comment(2, Some("a"))) && !purge("a").conflicts_with(&lock(1)));
}
