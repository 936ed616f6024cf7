//! Comment threads in a folder. Whoever can open it may see and do everything.

use std::path::Path;

use anyhow::Result;
use kinfolk_core::Id;
use kinfolk_core::graph::{EdgeStore, PageRequest};
use kinfolk_core::thread::{
    CommentEdit, CommentId, CommentPage, CommentTree, HistoryPage, Moderator, NewComment, Parent,
    ThreadOrder, TreeShape, Viewer, Withdrawal, WrittenComment,
};

use super::super::{OpenGraph, WriteDone};
use super::Threads;
use crate::bulk;
use crate::output::{Comments, FileWriter};
use crate::progress::Reporter;

const OPERATOR: Viewer = Viewer { user: None, is_moderator: true };

impl Threads for OpenGraph {
    fn comment(&self, wish: NewComment) -> Result<WrittenComment> {
        Ok(self.run(self.graph().comment(wish))?)
    }

    fn edit_comment(&self, author: Id, edit: CommentEdit) -> Result<WrittenComment> {
        Ok(self.run(self.graph().edit_comment(Some(author), edit))?)
    }

    fn withdraw_comment(
        &self,
        actor: Option<Id>,
        id: CommentId,
        withdrawal: Withdrawal,
    ) -> Result<WriteDone> {
        let by = actor.map(Moderator::User);
        let (token, changed) = self.run(async {
            match withdrawal {
                Withdrawal::Delete => self.graph().delete_comment(actor, id).await,
                Withdrawal::Remove(reason) => self.graph().remove_comment(id, reason, by).await,
                Withdrawal::Purge => self.graph().purge_comment(id, by).await,
            }
        })?;
        Ok(WriteDone { changed, token })
    }

    fn lock_thread(&self, post: Id, locked: bool) -> Result<WriteDone> {
        let (token, changed) = self.run(self.graph().lock_thread(Parent::post(post), locked))?;
        Ok(WriteDone { changed, token })
    }

    fn thread(&self, post: Id, order: ThreadOrder, request: PageRequest<'_>) -> Result<CommentPage> {
        Ok(self.run(self.graph().thread(Parent::post(post), order, request, (OPERATOR, None)))?)
    }

    fn comment_tree(&self, post: Id, shape: TreeShape, request: PageRequest<'_>) -> Result<CommentTree> {
        Ok(self.run(self.graph().comment_tree(Parent::post(post), shape, request, (OPERATOR, None)))?)
    }

    fn comments_by(&self, author: Id, request: PageRequest<'_>) -> Result<CommentPage> {
        Ok(self.run(self.graph().comments_by(author, request, (OPERATOR, None)))?)
    }

    fn comment_history(&self, id: CommentId, request: PageRequest<'_>) -> Result<HistoryPage> {
        Ok(self.run(self.graph().comment_history(id, request, (OPERATOR, None)))?)
    }

    fn export_comments(&self, file: &Path, reporter: &Reporter) -> Result<u64> {
        let mut writer = FileWriter::create(file, Comments { ids: self.store().id_kind() })?;
        let report = |progress| reporter.report(progress);
        let comments = bulk::export_comments(self.store(), &report, |comment| writer.write(comment))?;
        writer.finish()?;
        Ok(comments)
    }

    fn compact(&self, _: &Reporter) -> Result<u64> {
        Ok(self.store().compact()?)
    }
}
