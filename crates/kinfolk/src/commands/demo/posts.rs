//! The posts of the demo: who writes which, and when. Their payloads are in `posts/*.jsonl`, one on each line.

use std::cmp::Reverse;
use std::future::poll_fn;
use std::task::Poll;

use anyhow::Result;
use kinfolk_core::feeds::{Feeds, NewPost, Post, PostStore, PostWritten};
use kinfolk_core::{Clock, Error, Frontier, Id, SystemClock, Timestamp};

use super::cast::{AUTHORS, Cast};
use crate::client::LocalGraph;

/// The posts of the fan's followees, author by author, each with the newest first.
const OF_FOLLOWEES: &str = include_str!("posts/followees.jsonl");
/// How many of them each author has.
const POSTS_EACH: usize = 3;
/// The posts of the celebrity, newest first.
const OF_CELEBRITY: &str = include_str!("posts/celebrity.jsonl");
/// The posts of the fan, newest first.
const OF_FAN: &str = include_str!("posts/fan.jsonl");
/// A post that the fan deletes.
const DELETED: &str = r#"{"title":"Test, please ignore"}"#;

/// A post to write.
struct Draft {
    author: Id,
    minutes_ago: u64,
    payload: &'static str,
}

impl Draft {
    fn dated(self, now: Timestamp) -> NewPost {
        let Self { author, minutes_ago, payload } = self;
        // No person writes at the same second of each minute.
        let ago = minutes_ago * 60_000 + minutes_ago * 7_919 % 60_000;
        let created_at = Some(Timestamp::from_millis(now.millis().saturating_sub(ago)));
        NewPost { id: None, author, created_at, payload: Some(payload.into()), idempotency_key: None }
    }
}

/// Writes all posts, and deletes one. Returns the others.
pub(super) fn write(open: &LocalGraph, cast: &Cast) -> Result<Vec<Post>> {
    let (feeds, now) = (open.feeds()?, SystemClock.now());
    let deleted = Draft { author: cast.fan, minutes_ago: 0, payload: DELETED };
    let deleted = open.run(feeds.register_post(deleted.dated(now)))?.post.id;
    open.run(feeds.delete_post(Some(cast.fan), deleted, Frontier::EMPTY))?;

    let posts = drafts(cast).into_iter().map(|draft| draft.dated(now)).collect();
    Ok(open.run(register_all(&feeds, posts))?)
}

/// The post with a title.
pub(super) fn titled<'a>(posts: &'a [Post], title: &str) -> Option<&'a Post> {
    let beginning = format!("{{\"title\":\"{title}\",");
    posts.iter().find(|post| post.payload.as_ref().is_some_and(|payload| payload.starts_with(&beginning)))
}

/// The posts to write, oldest first, so that later posts get higher ids.
fn drafts(cast: &Cast) -> Vec<Draft> {
    let of_followees = OF_FOLLOWEES.lines().enumerate().map(|(number, payload)| {
        let (author, turn) = (number / POSTS_EACH, number % POSTS_EACH);
        Draft { author: cast.author(author), minutes_ago: minutes_ago(author, turn), payload }
    });
    let of_celebrity = (0..).zip(OF_CELEBRITY.lines()).map(|(number, payload)| Draft {
        author: cast.celebrity,
        minutes_ago: 190 + number * 1_573,
        payload,
    });
    let of_fan = (0..).zip(OF_FAN.lines()).map(|(number, payload)| Draft {
        author: cast.fan,
        minutes_ago: 47 + number * 1_999,
        payload,
    });
    let mut drafts: Vec<Draft> = of_followees.chain(of_celebrity).chain(of_fan).collect();
    drafts.sort_by_key(|draft| Reverse(draft.minutes_ago));
    drafts
}

/// When a followee writes: authors alternate, at uneven intervals over almost six days, and the first has written the newest.
fn minutes_ago(author: usize, turn: usize) -> u64 {
    // 7 is coprime to the number of authors.
    let place = (turn * AUTHORS + author * 7 % AUTHORS) as u64;
    9 + place * 137 + place * 53 % 97
}

/// Registers posts together, so that they share syncs of the disk. Returns them in the same order.
async fn register_all<S: PostStore>(feeds: &Feeds<S>, posts: Vec<NewPost>) -> Result<Vec<Post>, Error> {
    let mut writes: Vec<_> = posts.into_iter().map(|post| Box::pin(feeds.register_post(post))).collect();
    let mut results: Vec<Option<Result<PostWritten, Error>>> = writes.iter().map(|_| None).collect();
    poll_fn(|task| {
        for (write, result) in writes.iter_mut().zip(&mut results) {
            // The first poll puts the write into the store's queue, so that ids rise in this order.
            if result.is_none()
                && let Poll::Ready(written) = write.as_mut().poll(task)
            {
                *result = Some(written);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().map(|result| result.map(|written| written.post)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::super::discussions::DISCUSSIONS;
    use super::*;

    fn payloads() -> impl Iterator<Item = &'static str> {
        [OF_FOLLOWEES, OF_CELEBRITY, OF_FAN].into_iter().flat_map(str::lines)
    }

    #[test]
    fn payloads_are_objects_with_a_title_of_their_own() {
        let mut titles = HashSet::new();
        for payload in payloads() {
            let object: Value =
                serde_json::from_str(payload).unwrap_or_else(|error| panic!("{error}: {payload}"));
            assert!(object["text"].is_string() && object["tags"].is_array(), "{payload}");
            assert!(titles.insert(object["title"].as_str().unwrap().to_owned()), "{payload}");
        }
        assert_eq!(OF_FOLLOWEES.lines().count(), AUTHORS * POSTS_EACH);
    }

    #[test]
    fn every_discussion_has_its_post() {
        let posts: Vec<Post> = (1..)
            .zip(payloads())
            .map(|(id, payload)| Post {
                id: Id::Integer(id),
                author: Id::Integer(0),
                created_at: Timestamp::MIN,
                payload: Some(payload.into()),
            })
            .collect();
        for discussion in DISCUSSIONS {
            assert!(titled(&posts, discussion.post).is_some(), "{}", discussion.post);
        }
        assert_eq!(titled(&posts, DISCUSSIONS[0].post), posts.first(), "the longest is about the newest");
    }

    #[test]
    fn followees_write_at_different_times() {
        let all = (0..AUTHORS).flat_map(|author| (0..POSTS_EACH).map(move |turn| minutes_ago(author, turn)));
        let times: HashSet<u64> = all.collect();
        assert_eq!(times.len(), AUTHORS * POSTS_EACH);
        assert_eq!(times.iter().min(), Some(&minutes_ago(0, 0)));
        assert!(times.iter().all(|minutes| *minutes < 6 * 24 * 60));
    }
}
