//! Comment threads at a server. What is seen of comments that are not there any more depends on the credential.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentOrder, CommentPage, CommentTree, HistoryPage, NewComment, TreeShape,
    Withdrawal,
};
use kinfolk_core::{Id, PageRequest};
use serde::Serialize;
use ureq::http::Method;

use super::super::answers::Page;
use super::super::http::{Call, json, last_line};
use super::super::server::{Server, page_query, written};
use super::super::{CommentDone, WriteDone};
use super::Threads;
use super::answers::{CommentItem, CompactAnswer, NodeItem, VersionItem};
use super::csv::CommentReader;
use crate::answer::as_optional_text;
use crate::bulk::unrepeatable_name;
use crate::output::FileWriter;
use crate::progress::Reporter;

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
    fn write_comment(&self, call: Call<'_>, body: &Body<'_>) -> Result<CommentDone> {
        let text = serde_json::to_vec(body)?;
        let body = Some(("application/json", &mut text.as_slice() as &mut dyn Read));
        let answer = self.client.send(Call { body, ..call })?;
        let WriteDone { changed, token } = written(&answer)?;
        Ok(CommentDone { token, comment: json::<CommentItem>(answer)?.into_comment()?, is_new: changed })
    }
}

impl Threads for Server {
    fn comment(&self, wish: NewComment) -> Result<CommentDone> {
        let path = format!("/v1/posts/{}/comments", wish.parent.id);
        // A server wants a key from everybody, so that what got lost on the way can be sent again.
        let key = wish.idempotency_key.unwrap_or_else(|| unrepeatable_name().into());
        let actor = Some(wish.author.to_string());
        let call = Call { actor, idempotency_key: Some(key), ..Call::new(Method::POST, path) };
        self.write_comment(call, &Body { body: &wish.body, reply_to: wish.reply_to })
    }

    fn edit_comment(&self, author: Id, edit: CommentEdit) -> Result<CommentDone> {
        let CommentEdit { id, version, body } = edit;
        let call = Call {
            actor: Some(author.to_string()),
            if_match: Some(format!("\"{version}\"")),
            ..Call::new(Method::PATCH, format!("/v1/comments/{id}"))
        };
        self.write_comment(call, &Body { body: &body, reply_to: None })
    }

    fn withdraw_comment(
        &self,
        actor: Option<Id>,
        id: CommentId,
        withdrawal: Withdrawal,
    ) -> Result<WriteDone> {
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
        written(&self.client.send(Call { actor, body, ..call })?)
    }

    fn lock_comment_thread(&self, post: Id, locked: bool) -> Result<WriteDone> {
        let method = if locked { Method::PUT } else { Method::DELETE };
        written(&self.client.send(Call::new(method, format!("/v1/posts/{post}/comments/lock")))?)
    }

    fn comment_thread(&self, post: Id, order: CommentOrder, request: PageRequest<'_>) -> Result<CommentPage> {
        let (order, page) = (order.name(), page_query(request));
        self.client
            .get::<Page<CommentItem>>(format!("/v1/posts/{post}/comments?order={order}&{page}"))?
            .try_into()
    }

    fn comment_tree(&self, post: Id, shape: TreeShape, request: PageRequest<'_>) -> Result<CommentTree> {
        let (TreeShape { depth, replies }, page) = (shape, page_query(request));
        let path = format!("/v1/posts/{post}/comments?view=tree&depth={depth}&replies={replies}&{page}");
        self.client.get::<Page<NodeItem>>(path)?.try_into()
    }

    fn comments_by(&self, author: Id, request: PageRequest<'_>) -> Result<CommentPage> {
        let path = format!("/v1/users/{author}/comments?{}", page_query(request));
        self.client.get::<Page<CommentItem>>(path)?.try_into()
    }

    fn comment_history(&self, id: CommentId, request: PageRequest<'_>) -> Result<HistoryPage> {
        let path = format!("/v1/comments/{id}/history?{}", page_query(request));
        Ok(self.client.get::<Page<VersionItem>>(path)?.into())
    }

    /// Asks for plain lines and writes them in the format of the file, as for edges.
    fn export_comments(&self, file: &Path, reporter: &Reporter) -> Result<u64> {
        let call = Call::new(Method::GET, "/v1/admin/export?format=csv&content=comments".to_owned());
        let answer = self.client.send(Call { is_bulk: true, ..call })?;
        let lines = answer.into_body().into_with_config().limit(u64::MAX).reader();
        let mut reader = CommentReader::new(lines)?;
        let mut writer = FileWriter::create(file, reader.table())?;
        while let Some(comment) = reader.next()? {
            writer.write(&comment)?;
            reporter.report(reader.progress());
        }
        writer.finish()?;
        Ok(reader.progress().done)
    }

    fn compact(&self, reporter: &Reporter) -> Result<u64> {
        let call = Call::new(Method::POST, "/v1/admin/compact".to_owned());
        let answer: CompactAnswer = last_line(self.client.send(Call { is_bulk: true, ..call })?, reporter)?;
        Ok(answer.erased)
    }
}
