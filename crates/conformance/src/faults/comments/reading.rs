//! Faults of reading comments: of threads, branches, lists, bodies and counts, and of the public log.

use std::cmp::Reverse;
use std::sync::Mutex;

use kinfolk_core::Id;
use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    Branch, Comment, CommentChange, CommentId, CommentOrder, CommentStatus, CommentThreadState,
    CommentVersion, Parent, ParentKind,
};

use crate::faults::{Fault, Planted, locked_model};
use crate::model::Model;
use crate::model::comments::{page, text_of};

/// A page of comments: after which, and how many.
type Page = (Option<CommentId>, usize);

impl Planted {
    /// A comment as the fault shows it.
    pub(in crate::faults) fn distort_comment(&self, model: &Model, comment: &mut Comment) {
        let written = &model.threads.comments[&comment.id];
        let is_active = comment.status == CommentStatus::Active;
        match self.fault {
            Fault::CommentEditMovesTime => {
                comment.created_at = comment.edited_at.unwrap_or(comment.created_at);
            }
            Fault::CommentEditForgetsTime => comment.edited_at = None,
            Fault::CommentEditLosesReplies if comment.version > 1 => comment.reply_count = 0,
            Fault::CommentDeletionErasesText if !is_active => comment.body = None,
            Fault::CommentModeratorForgotten => comment.removed_by = None,
            Fault::CommentPurgeForgetsModerator if comment.status == CommentStatus::Purged => {
                comment.removed_by = None;
            }
            Fault::CommentPurgeLeavesText => {
                comment.body = written.versions.last().and_then(|last| last.1.clone());
            }
            Fault::ReplyCountSkipsTombstones => {
                let replies =
                    model.threads.comments.values().filter(|other| other.reply_to == Some(comment.id));
                comment.reply_count =
                    replies.filter(|reply| reply.status == CommentStatus::Active).count() as u64;
            }
            Fault::ReplyCountOfAllBelow => comment.reply_count = below(model, comment.id).len() as u64,
            _ => {}
        }
    }

    fn shown_comments(&self, model: &Model, mut comments: Vec<Comment>) -> Vec<Comment> {
        comments.iter_mut().for_each(|comment| self.distort_comment(model, comment));
        comments
    }

    /// Whether the fault has lost sight of a comment.
    fn is_hidden(&self, model: &Model, comment: &Comment) -> bool {
        let withdrawn =
            |id: CommentId| model.comment(id).is_some_and(|comment| comment.status != CommentStatus::Active);
        match self.fault {
            Fault::CommentEditHides => comment.version > 1,
            Fault::TombstonesVanish => comment.status != CommentStatus::Active,
            Fault::TombstonesLoseReplies => comment.reply_to.is_some_and(withdrawn),
            _ => false,
        }
    }

    pub(crate) fn comments(&self, model: &Model, ids: &[CommentId]) -> Vec<Option<Comment>> {
        let mut ids = ids.to_vec();
        if self.fault == Fault::CommentsInOtherOrder {
            ids.sort_by_key(|id| Reverse(*id));
        }
        let shown = |id| {
            let mut comment = model.comment(id)?;
            self.distort_comment(model, &mut comment);
            Some(comment).filter(|comment| !self.is_hidden(model, comment))
        };
        ids.into_iter().map(shown).collect()
    }

    pub(crate) fn comment_thread(
        &self,
        model: &Mutex<Model>,
        parent: Parent,
        order: CommentOrder,
        (after, limit): Page,
    ) -> Vec<Comment> {
        if self.fault == Fault::ThreadReadTorn {
            let mut found = locked_model(model).comment_thread(parent, order, after, limit);
            Self::gap();
            let model = locked_model(model);
            for comment in &mut found {
                comment.body = model.comment(comment.id).and_then(|now| now.body);
            }
            return found;
        }
        let model = &*locked_model(model);
        let order = if self.fault == Fault::ThreadNewestIgnored { CommentOrder::Oldest } else { order };
        let mut all = model.threads.all(|written| match self.fault {
            Fault::ThreadsMixKinds => written.parent.id == parent.id,
            _ => written.parent == parent,
        });
        all.retain(|comment| !self.is_hidden(model, comment));
        let is_there = |id| model.comment(id).is_some_and(|comment| comment.status == CommentStatus::Active);
        let mut found = match (self.fault, after) {
            (Fault::ThreadCursorInclusive, Some(CommentId(id))) => {
                let after =
                    if order == CommentOrder::Oldest { id.saturating_sub(1) } else { id.saturating_add(1) };
                page(all, order, Some(CommentId(after)), limit)
            }
            (Fault::ThreadCursorNeedsComment, Some(id)) if !is_there(id) => Vec::new(),
            (Fault::ThreadNewestCursorSkips, Some(_)) if order == CommentOrder::Newest => {
                page(all, order, after, limit.saturating_add(1)).split_off(1.min(limit))
            }
            (Fault::ThreadSecondPageFromStart, Some(_)) if order == CommentOrder::Newest => {
                page(all, order, None, limit)
            }
            _ => page(all, order, after, limit),
        };
        if self.fault == Fault::TombstonesFilteredAfterPaging {
            found.retain(|comment| comment.status == CommentStatus::Active);
        }
        self.shown_comments(model, found)
    }

    pub(crate) fn replies(&self, model: &Model, branches: &[Branch], limit: usize) -> Vec<Vec<Comment>> {
        let mut branches = branches.to_vec();
        match self.fault {
            Fault::BranchesInOtherOrder => branches.sort_by_key(|branch| Reverse(branch.reply_to)),
            Fault::BranchIgnoresAfter => branches.iter_mut().for_each(|branch| branch.after = None),
            _ => {}
        }
        let last = branches.len().saturating_sub(1);
        let one = |(at, branch): (usize, Branch)| {
            if self.fault == Fault::BranchLastForgotten && at == last && last > 0 {
                return Vec::new();
            }
            let mut found = match (self.fault, branch.reply_to) {
                (Fault::BranchHasAllBelow, Some(id)) => {
                    let ids = below(model, id);
                    let all = ids.into_iter().filter_map(|id| model.comment(id)).collect();
                    page(all, CommentOrder::Oldest, branch.after, limit)
                }
                _ => model.replies(branch, limit),
            };
            found.retain(|comment| !self.is_hidden(model, comment));
            if self.fault == Fault::BranchWithoutTombstones {
                found.retain(|comment| comment.status == CommentStatus::Active);
            }
            self.shown_comments(model, found)
        };
        branches.into_iter().enumerate().map(one).collect()
    }

    pub(crate) fn comments_by(&self, model: &Model, author: Id, (after, limit): Page) -> Vec<Comment> {
        let with_withdrawn =
            matches!(self.fault, Fault::AuthorsListShowsWithdrawn | Fault::AuthorsListFilteredAfterPaging);
        let mut all = model.threads.all(|written| {
            written.author == author
                && (with_withdrawn || written.status == CommentStatus::Active)
                && (self.fault != Fault::AuthorsListOfPostsOnly || written.parent.kind == ParentKind::Post)
        });
        all.retain(|comment| !self.is_hidden(model, comment));
        let order = match self.fault {
            Fault::AuthorsListOldestFirst => CommentOrder::Oldest,
            _ => CommentOrder::Newest,
        };
        let mut found = page(all, order, after, limit);
        if self.fault == Fault::AuthorsListFilteredAfterPaging {
            found.retain(|comment| comment.status == CommentStatus::Active);
        }
        self.shown_comments(model, found)
    }

    pub(crate) fn comment_versions(
        &self,
        model: &Model,
        id: CommentId,
        (after, limit): (u32, usize),
    ) -> Vec<CommentVersion> {
        let Some(written) = model.threads.comments.get(&id) else { return Vec::new() };
        match self.fault {
            Fault::CommentPurgeLeavesHistory => {
                let all = written.versions.iter().zip(1..).filter(|(_, version)| *version > after);
                let reported = all.filter_map(|((at, text), version)| {
                    Some(CommentVersion { version, at: *at, body: text.clone()? })
                });
                reported.take(limit).collect()
            }
            Fault::CommentEditForgetsHistory => {
                let mut found = model.comment_versions(id, after, usize::MAX);
                found.retain(|text| text.version == written.version());
                found
            }
            Fault::HistoryCursorInclusive => model.comment_versions(id, after.saturating_sub(1), limit),
            Fault::HistoryNewestFirst => {
                let mut found = model.comment_versions(id, after, limit);
                found.reverse();
                found
            }
            _ => model.comment_versions(id, after, limit),
        }
    }

    pub(crate) fn thread_state(&self, model: &Model, parent: Parent) -> CommentThreadState {
        let mut state = model.thread_state(parent);
        match self.fault {
            Fault::CommentCountHasTombstones => {
                state.count = model.threads.all(|written| written.parent == parent).len() as u64;
            }
            Fault::CommentCountOfTopOnly => {
                let top = model.replies(Branch { parent, reply_to: None, after: None }, usize::MAX);
                state.count =
                    top.iter().filter(|comment| comment.status == CommentStatus::Active).count() as u64;
            }
            Fault::CommentCountSharedByKinds => {
                let parents = ParentKind::ALL.map(|kind| Parent { kind, ..parent });
                state.count = parents.map(|parent| model.thread_state(parent).count).iter().sum();
            }
            _ => {}
        }
        let drift = self.state().comments.drift.get(&parent).copied().unwrap_or_default();
        CommentThreadState { count: state.count.saturating_add_signed(drift), ..state }
    }

    /// What the fault adds to an event.
    pub(in crate::faults) fn tell(&self, model: &Model, change: &mut Change) {
        let logged = model.changes.iter().find(|logged| logged.position == change.position);
        let Some(mut logged) = logged.cloned() else { return };
        match (self.fault, &mut change.body, &logged.body) {
            (_, ChangeBody::Followed { .. } | ChangeBody::Unfollowed { .. }, _) => return,
            (
                Fault::PostLogTellsDeleted,
                ChangeBody::Posted { post: reported, .. },
                ChangeBody::Posted { post, .. },
            ) => reported.payload.clone_from(&post.payload),
            (
                Fault::CommentLogForgetsModerator,
                ChangeBody::Comment(CommentChange::Withdrawn { by, .. }),
                _,
            ) => *by = None,
            _ => {}
        }
        let (Some((id, version, text)), Some((_, _, reported))) = (text_of(&mut logged), text_of(change))
        else {
            return;
        };
        let written = &model.threads.comments[&id];
        let is_current = version == written.version();
        let tells = match (self.fault, written.status) {
            (Fault::CommentLogTellsOldTexts, CommentStatus::Active) => true,
            (Fault::CommentLogTellsWithdrawn, CommentStatus::Deleted | CommentStatus::Removed) => is_current,
            (Fault::CommentPurgeLeavesLog, CommentStatus::Purged) => true,
            _ => false,
        };
        if tells {
            *reported = text.take();
        }
    }
}

/// All comments below one.
fn below(model: &Model, id: CommentId) -> Vec<CommentId> {
    let mut found = vec![id];
    // Replies have higher ids than what they answer.
    for (&id, written) in &model.threads.comments {
        if written.reply_to.is_some_and(|above| found.contains(&above)) {
            found.push(id);
        }
    }
    found.split_off(1)
}
