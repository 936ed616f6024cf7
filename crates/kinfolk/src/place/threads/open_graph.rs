//! Comment threads of a graph that is open in this process. Everybody who can open it may see and do everything.

use std::path::Path;

use anyhow::Result;
use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentOrder, CommentPage, CommentTree, CommentWritten, HistoryPage, Moderator,
    NewComment, Parent, TreeShape, Viewer, Withdrawal,
};
use kinfolk_core::{Deployment, Frontier, Id, PageRequest};

use super::super::{CommentDone, OpenGraph, WriteDone};
use super::Threads;
use crate::bulk;
use crate::output::{Comments, FileWriter};
use crate::profile::{OpenStore, Profile};
use crate::progress::Reporter;

const OPERATOR: Viewer = Viewer { user: None, is_moderator: true };

impl<P: Profile> OpenGraph<P> {
    fn commented(&self, CommentWritten { position, comment, is_new }: CommentWritten) -> CommentDone {
        CommentDone { token: self.token(position), comment, is_new }
    }
}

impl<P: Profile> Threads for OpenGraph<P> {
    fn comment(&self, new: NewComment) -> Result<CommentDone> {
        Ok(self.commented(self.run(self.comments()?.comment(new))?))
    }

    fn edit_comment(&self, author: Id, edit: CommentEdit) -> Result<CommentDone> {
        Ok(self.commented(self.run(self.comments()?.edit_comment(Some(author), edit, Frontier::EMPTY))?))
    }

    fn withdraw_comment(
        &self,
        actor: Option<Id>,
        id: CommentId,
        withdrawal: Withdrawal,
    ) -> Result<WriteDone> {
        let (comments, by) = (self.comments()?, actor.map(Moderator::User));
        let removed = self.run(async {
            match withdrawal {
                Withdrawal::Delete => comments.delete_comment(actor, id, Frontier::EMPTY).await,
                Withdrawal::Remove(reason) => comments.remove_comment(id, reason, by).await,
                Withdrawal::Purge => comments.purge_comment(id, by).await,
            }
        })?;
        Ok(self.removed(removed))
    }

    fn lock_comment_thread(&self, post: Id, locked: bool) -> Result<WriteDone> {
        Ok(self.removed(self.run(self.comments()?.lock_comment_thread(Parent::post(post), locked))?))
    }

    fn comment_thread(&self, post: Id, order: CommentOrder, request: PageRequest<'_>) -> Result<CommentPage> {
        Ok(self.run(self.comments()?.comment_thread(
            Parent::post(post),
            order,
            request,
            OPERATOR,
            Frontier::EMPTY,
        ))?)
    }

    fn comment_tree(&self, post: Id, shape: TreeShape, request: PageRequest<'_>) -> Result<CommentTree> {
        Ok(self.run(self.comments()?.comment_tree(
            Parent::post(post),
            shape,
            request,
            OPERATOR,
            Frontier::EMPTY,
        ))?)
    }

    fn comments_by(&self, author: Id, request: PageRequest<'_>) -> Result<CommentPage> {
        Ok(self.run(self.comments()?.comments_by(author, request, OPERATOR, Frontier::EMPTY))?)
    }

    fn comment_history(&self, id: CommentId, request: PageRequest<'_>) -> Result<HistoryPage> {
        Ok(self.run(self.comments()?.comment_history(id, request, OPERATOR, Frontier::EMPTY))?)
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
