//! What a server's answers look like, and what they mean here. Which calls they belong to is in `server`.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{CommentChange, CommentStatus};
use kinfolk_core::feeds::{Delivery, Post, PostPage};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::comment_answers::{AnsweredComment, moderator, parent};
use super::{SuggestedUser, Suggestions};
use crate::commands::parse_id;

/// An id in an answer; its form tells its kind.
pub(crate) struct AnsweredId(pub(crate) Id);

impl<'de> Deserialize<'de> for AnsweredId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        parse_id(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A time in an answer.
pub(crate) struct AnsweredTime(pub(crate) Timestamp);

impl<'de> Deserialize<'de> for AnsweredTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let time = Timestamp::parse(&text);
        time.map(Self).ok_or_else(|| serde::de::Error::custom("expected a time in RFC 3339"))
    }
}

#[derive(Deserialize)]
pub(crate) struct Following {
    pub(crate) following: bool,
    pub(crate) since: Option<AnsweredTime>,
}

#[derive(Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: AnsweredId,
    pub(crate) since: AnsweredTime,
}

#[derive(Deserialize)]
pub(crate) struct CountsItem {
    pub(crate) following: u64,
    pub(crate) followers: u64,
}

#[derive(Deserialize)]
pub(crate) struct OverlapAnswer {
    pub(crate) count: u64,
    pub(crate) items: Vec<OverlapItem>,
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct OverlapItem {
    pub(crate) id: AnsweredId,
}

#[derive(Deserialize)]
pub(crate) struct SuggestionsAnswer {
    pub(crate) items: Vec<SuggestionItem>,
    pub(crate) computed_at: Option<AnsweredTime>,
}

#[derive(Deserialize)]
pub(crate) struct SuggestionItem {
    pub(crate) id: AnsweredId,
    pub(crate) mutual_count: u32,
    pub(crate) score: f64,
    pub(crate) jaccard: f64,
    pub(crate) via: Vec<AnsweredId>,
}

impl From<SuggestionsAnswer> for Suggestions {
    fn from(SuggestionsAnswer { items, computed_at }: SuggestionsAnswer) -> Self {
        let item = |SuggestionItem { id, mutual_count, score, jaccard, via }| SuggestedUser {
            id: id.0,
            mutual_count,
            score,
            jaccard,
            via: via.into_iter().map(|id| id.0).collect(),
        };
        Self { items: items.into_iter().map(item).collect(), computed_at: computed_at.map(|at| at.0) }
    }
}

#[derive(Deserialize)]
pub(crate) struct PostItem {
    id: AnsweredId,
    author: AnsweredId,
    created_at: AnsweredTime,
    payload: Option<Box<RawValue>>,
}

impl From<PostItem> for Post {
    fn from(PostItem { id, author, created_at, payload }: PostItem) -> Self {
        Self { id: id.0, author: author.0, created_at: created_at.0, payload: payload.as_deref().map(text) }
    }
}

impl From<Page<PostItem>> for PostPage {
    fn from(Page { items, next }: Page<PostItem>) -> Self {
        Self { items: items.into_iter().map(Post::from).collect(), next }
    }
}

fn text(json: &RawValue) -> Arc<str> {
    json.get().into()
}

/// A change. Which of the fields are there depends on its type.
#[derive(Deserialize)]
pub(crate) struct ChangeItem {
    position: String,
    r#type: String,
    at: AnsweredTime,
    follower: Option<AnsweredId>,
    followee: Option<AnsweredId>,
    since: Option<AnsweredTime>,
    edges: Option<u64>,
    post: Option<AnsweredId>,
    author: Option<AnsweredId>,
    created_at: Option<AnsweredTime>,
    delivery: Option<String>,
    payload: Option<Box<RawValue>>,
    comment: Option<AnsweredComment>,
    item: Option<AnsweredId>,
    conversation: Option<AnsweredId>,
    reply_to: Option<AnsweredComment>,
    depth: Option<u8>,
    version: Option<u32>,
    body: Option<String>,
    removed_by: Option<String>,
}

impl ChangeItem {
    pub(crate) fn into_change(self) -> Result<Change> {
        let position = self.position.parse();
        let position = position.map_err(|_| anyhow!("the server sent {:?} for a position", self.position))?;
        let (at, r#type) = (self.at.0, self.r#type.clone());
        let unknown = || anyhow!("this version does not know changes of the type {type}");
        Ok(Change { position, at, body: self.into_body().ok_or_else(unknown)? })
    }

    fn into_body(self) -> Option<ChangeBody> {
        match self.r#type.as_str() {
            "imported" => Some(ChangeBody::Imported { kind: EdgeKind::Follow, edges: self.edges? }),
            "post" => {
                let delivery = Delivery::from_name(self.delivery.as_deref()?)?;
                let post = Post {
                    id: self.post?.0,
                    author: self.author?.0,
                    created_at: self.created_at?.0,
                    payload: self.payload.as_deref().map(text),
                };
                Some(ChangeBody::Posted { post, delivery })
            }
            "post_deleted" => Some(ChangeBody::PostDeleted {
                id: self.post?.0,
                author: self.author?.0,
                created_at: self.created_at?.0,
            }),
            text if text.starts_with("comment") => self.into_thread_change().map(ChangeBody::Comment),
            _ => self.into_edge_body(),
        }
    }

    fn into_thread_change(self) -> Option<CommentChange> {
        let parent = parent(self.post, self.item, self.conversation)?;
        match self.r#type.as_str() {
            "comments_locked" => return Some(CommentChange::Locked { parent, locked: true }),
            "comments_unlocked" => return Some(CommentChange::Locked { parent, locked: false }),
            _ => {}
        }
        let (id, author, body) = (self.comment?.0, self.author?.0, self.body.map(Arc::from));
        match self.r#type.as_str() {
            "comment" => {
                let (reply_to, depth) = (self.reply_to.map(|id| id.0), self.depth?);
                Some(CommentChange::Written { id, parent, author, reply_to, depth, body })
            }
            "comment_edited" => {
                Some(CommentChange::Edited { id, parent, author, version: self.version?, body })
            }
            text => {
                let status = text.strip_prefix("comment_").and_then(CommentStatus::from_name)?;
                let is_over = status != CommentStatus::Active;
                let by = self.removed_by.as_deref().and_then(moderator);
                is_over.then_some(CommentChange::Withdrawn { id, parent, author, status, by })
            }
        }
    }

    /// The types of changes of edges are named after the kinds of edges.
    fn into_edge_body(self) -> Option<ChangeBody> {
        let edge = Edge { follower: self.follower?.0, followee: self.followee?.0 };
        if let Some(kind) = EdgeKind::from_name(&self.r#type) {
            return Some(ChangeBody::Followed { kind, edge });
        }
        let kind = self.r#type.strip_prefix("un").and_then(EdgeKind::from_name)?;
        Some(ChangeBody::Unfollowed { kind, edge, since: self.since?.0 })
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::comments::{CommentId, Moderator, Parent, ParentKind};

    use super::*;

    fn change(json: &str) -> Result<ChangeBody> {
        let item: ChangeItem = serde_json::from_str(json)?;
        Ok(item.into_change()?.body)
    }

    #[test]
    fn changes_of_threads_are_understood() {
        let at = r#""position":"0-1","at":"1970-01-01T00:00:00.005Z""#;
        let (parent, author) = (Parent::post(Id::Integer(8)), Id::Integer(1));
        let (id, reply_to) = (CommentId(9), CommentId(7));
        let [this, other] = [id, reply_to].map(|id| id.to_string());
        let by = format!(r#""comment":"{this}","post":"8","author":"1""#);
        let body = Some("a\n".into());
        let review = Parent { kind: ParentKind::Item, id: Id::Integer(8) };
        let status = CommentStatus::Removed;
        let removed = |by| CommentChange::Withdrawn { id, parent, author, status, by: Some(by) };
        for (fields, change_of_thread) in [
            (
                format!(r#""type":"comment",{by},"reply_to":"{other}","depth":1,"body":"a\n""#),
                CommentChange::Written { id, parent, author, reply_to: Some(reply_to), depth: 1, body },
            ),
            (
                format!(r#""type":"comment",{by},"depth":0"#),
                CommentChange::Written { id, parent, author, reply_to: None, depth: 0, body: None },
            ),
            (
                format!(r#""type":"comment_edited",{by},"version":2"#),
                CommentChange::Edited { id, parent, author, version: 2, body: None },
            ),
            (
                format!(r#""type":"comment_purged",{by}"#),
                CommentChange::Withdrawn { id, parent, author, status: CommentStatus::Purged, by: None },
            ),
            (
                format!(r#""type":"comment_removed",{by},"removed_by":"user:9""#),
                removed(Moderator::User(Id::Integer(9))),
            ),
            (
                format!(r#""type":"comment_removed",{by},"removed_by":"key:feed""#),
                removed(Moderator::Service("feed".into())),
            ),
            (
                r#""type":"comments_locked","post":"8""#.to_owned(),
                CommentChange::Locked { parent, locked: true },
            ),
            (
                r#""type":"comments_unlocked","item":"8""#.to_owned(),
                CommentChange::Locked { parent: review, locked: false },
            ),
        ] {
            let understood = change(&format!("{{{at},{fields}}}")).unwrap();
            assert_eq!(understood, ChangeBody::Comment(change_of_thread));
        }
        for fields in ["\"type\":\"comment\"".to_owned(), format!("\"type\":\"comment_active\",{by}")] {
            assert!(change(&format!("{{{at},{fields}}}")).is_err(), "{fields}");
        }
    }

    #[test]
    fn changes_of_every_type_are_understood() {
        let at = r#""position":"0-1","at":"1970-01-01T00:00:00.005Z""#;
        let (kind, edge) = (EdgeKind::Follow, Edge { follower: Id::Integer(1), followee: Id::Integer(2) });
        let created_at = Timestamp::from_millis(7);
        let (id, author) = (Id::Integer(8), Id::Integer(1));
        let post = Post { id, author, created_at, payload: Some(r#"{"b":1.10}"#.into()) };
        let made = r#""post":"8","author":"1","created_at":"1970-01-01T00:00:00.007Z""#;
        for (fields, body) in [
            (
                r#""type":"follow","follower":"1","followee":"2""#.to_owned(),
                ChangeBody::Followed { kind, edge },
            ),
            (
                r#""type":"unfollow","follower":"1","followee":"2","since":"1970-01-01T00:00:00.007Z""#
                    .to_owned(),
                ChangeBody::Unfollowed { kind, edge, since: created_at },
            ),
            (r#""type":"imported","edges":9"#.to_owned(), ChangeBody::Imported { kind, edges: 9 }),
            (
                format!(r#""type":"post",{made},"delivery":"pull","payload":{{"b":1.10}}"#),
                ChangeBody::Posted { post: post.clone(), delivery: Delivery::Pull },
            ),
            (
                format!(r#""type":"post",{made},"delivery":"push""#),
                ChangeBody::Posted { post: Post { payload: None, ..post }, delivery: Delivery::Push },
            ),
            (format!(r#""type":"post_deleted",{made}"#), ChangeBody::PostDeleted { id, author, created_at }),
        ] {
            assert_eq!(change(&format!("{{{at},{fields}}}")).unwrap(), body);
        }
        for fields in
            [r#""type":"new""#, r#""type":"post""#, r#""type":"unfollow","follower":"1","followee":"2""#]
        {
            let error = change(&format!("{{{at},{fields}}}")).unwrap_err().to_string();
            assert!(error.contains("does not know changes of the type"), "{error}");
        }
    }
}
