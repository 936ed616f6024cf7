//! What is known of comments that several threads write, and whether the log agrees with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    Comment, CommentChange, CommentEdit, CommentId, CommentStatus, CommentWritten, Moderator, NewComment,
    Parent,
};
use kinfolk_core::{ErrorCode, Position};

use crate::model::Model;
use crate::random::compare::{Verdict, equal};
use crate::random::unknown_comments::{Asked, Unknown};

/// What is known beside the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// All comments whose writing was acknowledged.
    pub written: BTreeMap<CommentId, Parent>,
    /// Comments that nobody changes.
    pub steady: Vec<Comment>,
    /// All texts that anybody ever asked for, before the store was asked.
    pub asked: BTreeSet<Arc<str>>,
    /// What each version was acknowledged to say.
    pub texts: BTreeMap<(CommentId, u32), Arc<str>>,
    /// How bad the status of a comment is at least.
    pub statuses: BTreeMap<CommentId, CommentStatus>,
    pub reasons: BTreeMap<CommentId, Arc<str>>,
    /// Who withdrew a comment at a position.
    pub moderators: HashMap<Position, Moderator>,
    /// Operations whose outcome is unknown.
    pub unknown: Vec<Unknown>,
    /// What each of the twins was answered, by the number of the request; with [`ErrorCode::TimedOut`] where the outcome is unknown.
    pub twins: BTreeMap<u64, Vec<Result<CommentWritten, ErrorCode>>>,
    /// The positions of all changes that were acknowledged.
    pub positions: Vec<Position>,
}

impl Known {
    /// Finds the operation of unknown outcome that made a change, and takes what it says for acknowledged. `text` is what the
    /// comment said since then, where that is known.
    pub(super) fn explain(&mut self, change: &Change, text: Option<&Arc<str>>) -> Verdict {
        let Some(place) = self.unknown.iter().position(|unknown| unknown.generated(change, text)) else {
            return Err(format!("nobody made {change:?}, or it was made twice"));
        };
        match (self.unknown.swap_remove(place).asked, &change.body) {
            (Asked::Withdrawal { id, status, by, reason }, _) => {
                self.moderators.extend(by.map(|by| (change.position, by)));
                if status == CommentStatus::Removed {
                    self.reasons.insert(id, reason);
                }
            }
            (Asked::Edit(CommentEdit { id, version, body }), _) => {
                self.texts.insert((id, version + 1), body);
            }
            (Asked::Comment(request), ChangeBody::Comment(CommentChange::Written { id, .. })) => {
                self.texts.insert((*id, 1), request.body);
            }
            _ => {}
        }
        Ok(())
    }

    /// Of two equal requests one is new and the other repeats it; of two that differ one is refused.
    pub(super) fn audit_twins(&self) -> Verdict {
        for (number, answers) in &self.twins {
            let written: Vec<&CommentWritten> = answers.iter().flatten().collect();
            let refused: Vec<&ErrorCode> =
                answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
            let new = written.iter().filter(|answer| answer.is_new).count();
            let right = match (&written[..], &refused[..]) {
                ([one, other], []) => new == 1 && one.comment.id == other.comment.id,
                // Or it was written after the thread was unlocked, or before it was locked or gone and repeated later.
                (
                    [_],
                    [ErrorCode::IdempotencyConflict | ErrorCode::ThreadLocked | ErrorCode::Unavailable],
                ) => new == 1,
                // Either of them may have been first.
                ([_], [ErrorCode::TimedOut])
                | ([], [ErrorCode::TimedOut, ErrorCode::IdempotencyConflict])
                | ([], [ErrorCode::IdempotencyConflict, ErrorCode::TimedOut]) => true,
                ([], [one, other]) => {
                    let refusals = [
                        ErrorCode::ThreadLocked,
                        ErrorCode::NotFound,
                        ErrorCode::Unavailable,
                        ErrorCode::TimedOut,
                    ];
                    refusals.contains(one) && refusals.contains(other)
                }
                // The first was refused, and no retry is after the end.
                _ => false,
            };
            if !right {
                return Err(format!("the request {number} was answered with {answers:?}"));
            }
        }
        Ok(())
    }
}

/// Whether the state before allows a change.
pub(super) fn audit_change(model: &Model, change: &Change, depth_max: u8) -> Verdict {
    let ChangeBody::Comment(reported) = &change.body else { return Ok(()) };
    let wrong = |why: &str| Err(format!("{change:?}: {why}"));
    let comments = &model.threads.comments;
    match reported {
        CommentChange::Written { id, parent, author, reply_to, depth, .. } => {
            if comments.iter().any(|(known, written)| written.parent == *parent && known >= id) {
                return wrong("its id is not the highest of the thread");
            }
            let (body, idempotency_key) = ("".into(), None);
            let request = NewComment {
                parent: *parent,
                author: *author,
                body,
                reply_to: *reply_to,
                idempotency_key,
                depth_max,
            };
            let allowed = model.require_open(*parent).and_then(|()| model.depth_of(&request));
            match allowed {
                Ok(expected) => equal(|| format!("the depth in {change:?}"), depth, &expected),
                Err(error) => wrong(&error.to_string()),
            }
        }
        CommentChange::Edited { id, version, .. } => match comments.get(id) {
            Some(written) if written.status != CommentStatus::Active => wrong("it was not active"),
            Some(written) => equal(|| format!("{change:?}"), version, &(written.version() + 1)),
            None => wrong("there is no such comment"),
        },
        CommentChange::Withdrawn { id, status, .. } => match comments.get(id) {
            Some(written) if written.status < *status => Ok(()),
            _ => wrong("it was not worse"),
        },
        CommentChange::Locked { parent, locked } => {
            let was = model.threads.locked.contains(parent);
            equal(|| format!("whether it was locked before {change:?}"), &was, &!locked)
        }
    }
}
