//! Comment threads at a server. What is seen of comments that are not there any more depends on the credential.

use std::io::Read;
use std::sync::Arc;

use anyhow::Result;
use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentOrder, CommentPage, CommentTree, HistoryPage, NewComment, TreeShape,
    Withdrawal,
};
use kinfolk_core::{Id, PageRequest};
use serde::Serialize;
use ureq::http::Method;

use super::answers::Page;
use super::comment_answers::{CommentItem, NodeItem, VersionItem};
use super::http::{Call, json};
use super::server::{Server, page_query, written};
use super::{CommentWritten, Written};
use crate::bulk::unique_name;
use crate::print::as_optional_text;

/// A comment on its way to a server.
#[derive(Serialize)]
struct Body<'a> {
    body: &'a str,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    reply_to: Option<CommentId>,
}

/// Why a comment is removed.
#[derive(Serialize)]
struct Removal<'a> {
    reason: &'a str,
}

impl Server {
    /// A write with a JSON document that answers with a comment.
    fn write_comment(&self, call: Call<'_>, body: &Body<'_>) -> Result<CommentWritten> {
        let text = serde_json::to_vec(body)?;
        let body = Some(("application/json", &mut text.as_slice() as &mut dyn Read));
        let answer = self.http.send(Call { body, ..call })?;
        let written = written(&answer)?;
        Ok(CommentWritten { written, comment: json::<CommentItem>(answer)?.into_comment()? })
    }
}

impl Server {
    pub(crate) fn comment(&self, new: NewComment) -> Result<CommentWritten> {
        let path = format!("/v1/posts/{}/comments", new.parent.id);
        // A server wants a key from everybody, so that what got lost on the way can be sent again.
        let key = new.idempotency_key.unwrap_or_else(|| unique_name().into());
        let actor = Some(new.author.to_string());
        let call = Call { actor, idempotency_key: Some(key), ..Call::new(Method::POST, path) };
        self.write_comment(call, &Body { body: &new.body, reply_to: new.reply_to })
    }

    pub(crate) fn edit_comment(&self, author: Id, edit: CommentEdit) -> Result<CommentWritten> {
        let CommentEdit { id, version, body } = edit;
        let call = Call {
            actor: Some(author.to_string()),
            if_match: Some(format!("\"{version}\"")),
            ..Call::new(Method::PATCH, format!("/v1/comments/{id}"))
        };
        self.write_comment(call, &Body { body: &body, reply_to: None })
    }

    pub(crate) fn withdraw_comment(
        &self,
        actor: Option<Id>,
        id: CommentId,
        withdrawal: Withdrawal,
    ) -> Result<Written> {
        let (method, action, reason): (_, _, Option<Arc<str>>) = match withdrawal {
            Withdrawal::Delete => (Method::DELETE, "", None),
            Withdrawal::Remove(reason) => (Method::POST, "/remove", Some(reason)),
            Withdrawal::Purge => (Method::POST, "/purge", None),
        };
        let text = reason.map(|reason| serde_json::to_vec(&Removal { reason: &reason })).transpose()?;
        let mut text = text.as_deref();
        let body = text.as_mut().map(|text| ("application/json", text as &mut dyn Read));
        let call = Call::new(method, format!("/v1/comments/{id}{action}"));
        let actor = actor.map(|actor| actor.to_string());
        written(&self.http.send(Call { actor, body, ..call })?)
    }

    pub(crate) fn lock_comments(&self, post: Id, locked: bool) -> Result<Written> {
        let method = if locked { Method::PUT } else { Method::DELETE };
        written(&self.http.send(Call::new(method, format!("/v1/posts/{post}/comments/lock")))?)
    }

    pub(crate) fn comments(
        &self,
        post: Id,
        order: CommentOrder,
        request: PageRequest<'_>,
    ) -> Result<CommentPage> {
        let (order, page) = (order.name(), page_query(request));
        self.http
            .get::<Page<CommentItem>>(format!("/v1/posts/{post}/comments?order={order}&{page}"))?
            .try_into()
    }

    pub(crate) fn comment_tree(
        &self,
        post: Id,
        shape: TreeShape,
        request: PageRequest<'_>,
    ) -> Result<CommentTree> {
        let (TreeShape { depth, replies }, page) = (shape, page_query(request));
        let path = format!("/v1/posts/{post}/comments?view=tree&depth={depth}&replies={replies}&{page}");
        self.http.get::<Page<NodeItem>>(path)?.try_into()
    }

    pub(crate) fn comments_by(&self, author: Id, request: PageRequest<'_>) -> Result<CommentPage> {
        let path = format!("/v1/users/{author}/comments?{}", page_query(request));
        self.http.get::<Page<CommentItem>>(path)?.try_into()
    }

    pub(crate) fn comment_history(&self, id: CommentId, request: PageRequest<'_>) -> Result<HistoryPage> {
        let path = format!("/v1/comments/{id}/history?{}", page_query(request));
        Ok(self.http.get::<Page<VersionItem>>(path)?.into())
    }
}
