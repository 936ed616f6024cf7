//! What a server's answers about comments look like, and what they mean here.

use anyhow::{Result, anyhow};
use kinfolk_core::comments::{
    Comment, CommentId, CommentNode, CommentPage, CommentStatus, CommentTree, CommentVersion, HistoryPage,
    Moderator, Parent, ParentKind,
};
use serde::{Deserialize, Deserializer};

use super::answers::{AnsweredId, AnsweredTime, Page};
use crate::commands::parse_id;

/// The id of a comment in an answer.
#[derive(Clone, Copy)]
pub(crate) struct AnsweredComment(pub(crate) CommentId);

impl<'de> Deserialize<'de> for AnsweredComment {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        CommentId::parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// What a comment was written to, by the one field that is there.
pub(crate) fn parent(
    post: Option<AnsweredId>,
    item: Option<AnsweredId>,
    conversation: Option<AnsweredId>,
) -> Option<Parent> {
    let fields =
        [(ParentKind::Post, post), (ParentKind::Item, item), (ParentKind::Conversation, conversation)];
    fields.into_iter().find_map(|(kind, id)| Some(Parent { kind, id: id?.0 }))
}

/// Who removed or purged a comment, as answers and exports say it.
pub(crate) fn moderator(text: &str) -> Option<Moderator> {
    match text.split_once(':')? {
        ("user", id) => parse_id(id).ok().map(Moderator::User),
        ("key", name) => Some(Moderator::Service(name.into())),
        _ => None,
    }
}

#[derive(Deserialize)]
pub(crate) struct CommentItem {
    id: AnsweredComment,
    post: Option<AnsweredId>,
    item: Option<AnsweredId>,
    conversation: Option<AnsweredId>,
    author: AnsweredId,
    body: Option<String>,
    version: u32,
    created_at: AnsweredTime,
    edited_at: Option<AnsweredTime>,
    status: String,
    depth: u8,
    reply_to: Option<AnsweredComment>,
    reply_count: u64,
    reason: Option<String>,
    removed_by: Option<String>,
}

impl CommentItem {
    pub(crate) fn into_comment(self) -> Result<Comment> {
        let Self { id, author, body, version, created_at, edited_at, status, depth, reply_to, .. } = self;
        let unknown = || anyhow!("this version does not know comments that are {status}");
        let nowhere = || anyhow!("the server did not say what a comment was written to");
        Ok(Comment {
            id: id.0,
            parent: parent(self.post, self.item, self.conversation).ok_or_else(nowhere)?,
            author: author.0,
            reply_to: reply_to.map(|id| id.0),
            depth,
            created_at: created_at.0,
            version,
            edited_at: edited_at.map(|time| time.0),
            status: CommentStatus::from_name(&status).ok_or_else(unknown)?,
            body: body.map(Into::into),
            reason: self.reason.map(Into::into),
            removed_by: self.removed_by.as_deref().and_then(moderator),
            reply_count: self.reply_count,
        })
    }
}

impl TryFrom<Page<CommentItem>> for CommentPage {
    type Error = anyhow::Error;

    fn try_from(Page { items, next }: Page<CommentItem>) -> Result<Self> {
        let items = items.into_iter().map(CommentItem::into_comment).collect::<Result<_>>()?;
        Ok(Self { items, next })
    }
}

/// A comment with some of its replies.
#[derive(Deserialize)]
pub(crate) struct NodeItem {
    #[serde(flatten)]
    comment: CommentItem,
    #[serde(default)]
    replies: Vec<NodeItem>,
    next: Option<String>,
}

impl NodeItem {
    fn into_node(self) -> Result<CommentNode> {
        let replies = self.replies.into_iter().map(Self::into_node).collect::<Result<_>>()?;
        Ok(CommentNode { comment: self.comment.into_comment()?, replies, next: self.next })
    }
}

impl TryFrom<Page<NodeItem>> for CommentTree {
    type Error = anyhow::Error;

    fn try_from(Page { items, next }: Page<NodeItem>) -> Result<Self> {
        let items = items.into_iter().map(NodeItem::into_node).collect::<Result<_>>()?;
        Ok(Self { items, next })
    }
}

#[derive(Deserialize)]
pub(crate) struct VersionItem {
    version: u32,
    at: AnsweredTime,
    body: String,
}

impl From<Page<VersionItem>> for HistoryPage {
    fn from(Page { items, next }: Page<VersionItem>) -> Self {
        let version =
            |VersionItem { version, at, body }| CommentVersion { version, at: at.0, body: body.into() };
        Self { items: items.into_iter().map(version).collect(), next }
    }
}
