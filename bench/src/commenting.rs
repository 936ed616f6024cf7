//! Comments for measurements: made up from a seed, and written in process, many at a time. Which threads they go to is the
//! caller's.

use anyhow::{Context, Result, bail};
use kinfolk_core::comments::{Comment, CommentId, CommentOrder, CommentStore, NewComment, Parent};
use kinfolk_core::feeds::{NewPost, PostStore};
use kinfolk_core::{Frontier, Id};
use kinfolk_embedded::Embedded;

use crate::posting::{for_each, runtime};
use crate::random::Random;
use crate::survey::Users;

/// How many comments a page has.
pub const PAGE: usize = 50;
/// How many comments are under way at a time where it is not their latency that matters.
const OUTSTANDING: usize = 1_024;
/// How long texts are, in characters: 120 on average.
const BODY_CHARS: (u64, u64) = (60, 175);
const DEPTH_MAX: u8 = 50;
/// A walk through a whole thread takes so many at a time.
const WALKED: usize = 1_000;

const WORDS: &[&str] = &[
    "about",
    "after",
    "again",
    "another",
    "answer",
    "because",
    "before",
    "between",
    "bread",
    "bridge",
    "bring",
    "coffee",
    "could",
    "cycle",
    "different",
    "early",
    "enough",
    "evening",
    "every",
    "family",
    "forest",
    "found",
    "friend",
    "garden",
    "going",
    "good",
    "harbour",
    "house",
    "kitchen",
    "letter",
    "light",
    "little",
    "market",
    "maybe",
    "memory",
    "morning",
    "mountain",
    "music",
    "never",
    "often",
    "people",
    "photo",
    "picture",
    "place",
    "quiet",
    "really",
    "recipe",
    "remember",
    "river",
    "road",
    "seems",
    "short",
    "story",
    "street",
    "summer",
    "thank",
    "there",
    "thing",
    "think",
    "train",
    "weather",
    "where",
    "winter",
    "yesterday",
];

/// Makes up comments of users at random.
#[derive(Clone, Debug)]
pub struct Commenter {
    random: Random,
    users: Users,
}

/// What a comment is made of, but for its thread.
#[derive(Clone, Debug)]
pub struct MadeUp {
    pub author: u64,
    pub key: String,
    pub body: String,
}

impl Commenter {
    pub fn new(seed: u64, users: Users) -> Self {
        Self { random: Random::new(seed), users }
    }

    /// Another one, whose comments have other keys.
    pub fn fork(&mut self) -> Self {
        Self::new(self.random.next(), self.users)
    }

    pub fn make_up(&mut self) -> MadeUp {
        MadeUp {
            author: self.users.random(&mut self.random),
            key: format!("{:016x}", self.random.next()),
            body: self.body(),
        }
    }

    pub fn body(&mut self) -> String {
        let (shortest, longest) = BODY_CHARS;
        let chars = (shortest + self.random.below(longest - shortest)) as usize;
        let mut body = String::with_capacity(chars + 10);
        while body.len() < chars {
            if !body.is_empty() {
                body.push(' ');
            }
            body.push_str(self.random.pick(WORDS));
        }
        body
    }

    /// A comment at the top of a thread.
    pub fn new_comment(&mut self, parent: Parent) -> NewComment {
        let MadeUp { author, key, body } = self.make_up();
        NewComment {
            parent,
            author: Id::Integer(author),
            body: body.into(),
            reply_to: None,
            idempotency_key: Some(key.into()),
            depth_max: DEPTH_MAX,
        }
    }

    /// A new post with so many comments. Nobody follows its author, so that it goes to no inbox.
    pub fn comment_thread(&mut self, store: &Embedded, comments: usize) -> Result<Parent> {
        let author = Id::Integer(self.users.last + 1);
        let post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        let parent = Parent::post(runtime()?.block_on(store.register(post))?.post.id);
        let comments: Vec<_> = (0..comments).map(|_| self.new_comment(parent)).collect();
        write_all(store, comments.into_iter())?;
        Ok(parent)
    }
}

/// Writes comments, and returns when all of them are durable.
pub fn write_all(store: &Embedded, comments: impl Iterator<Item = NewComment> + 'static) -> Result<()> {
    for_each(OUTSTANDING, comments, {
        let store = store.clone();
        move |new| {
            let store = store.clone();
            async move { store.comment(new).await }
        }
    })
}

/// A thread's first page, which has to be full and in order.
pub async fn first_page(
    store: &Embedded,
    parent: Parent,
    order: CommentOrder,
    limit: usize,
) -> Result<Vec<Comment>> {
    let page = store.comment_thread(parent, order, None, limit, Frontier::EMPTY).await?;
    let sorted = page.is_sorted_by(|one, other| match order {
        CommentOrder::Oldest => one.id < other.id,
        CommentOrder::Newest => one.id > other.id,
    });
    if page.len() != limit || !sorted {
        bail!("a page of {limit} comments has {} or is not in order", page.len());
    }
    Ok(page)
}

/// The ids of a whole thread, which has to have so many comments.
pub fn walk(store: &Embedded, parent: Parent, expected: u64) -> Result<Vec<CommentId>> {
    let mut ids: Vec<CommentId> = Vec::new();
    runtime()?.block_on(async {
        loop {
            let page = store
                .comment_thread(parent, CommentOrder::Oldest, ids.last().copied(), WALKED, Frontier::EMPTY)
                .await?;
            ids.extend(page.iter().map(|comment| comment.id));
            if page.len() < WALKED {
                break;
            }
        }
        let state =
            store.comment_threads(&[parent], Frontier::EMPTY).await?.pop().context("a thread has a state")?;
        if ids.len() as u64 != expected || state.count != expected || !ids.is_sorted() {
            bail!("a thread of {expected} comments has {} and counts {}", ids.len(), state.count);
        }
        Ok(ids)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_follow_from_the_seed_and_have_a_usual_length() {
        let mut commenter = Commenter::new(1, Users { first: 1, last: 9 });
        let bodies: Vec<String> = (0..1_000).map(|_| commenter.make_up().body).collect();
        let mut again = Commenter::new(1, Users { first: 1, last: 9 });
        assert!(bodies.iter().all(|body| *body == again.make_up().body));
        let chars: usize = bodies.iter().map(String::len).sum();
        assert!((115..=125).contains(&(chars / bodies.len())), "{chars}");
        assert_ne!(commenter.fork().make_up().key, commenter.make_up().key);
    }
}
