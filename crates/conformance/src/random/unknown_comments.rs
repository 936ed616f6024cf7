//! Changes of comments whose outcome is unknown: each may be in the log once, after what its caller had seen, or not at all.

use std::collections::HashSet;
use std::sync::Arc;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    CommentChange, CommentEdit, CommentId, CommentStatus, Moderator, NewComment, Parent,
};
use kinfolk_core::{Frontier, Id, Position};

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Comment(NewComment),
    Edit(CommentEdit),
    Withdrawal { id: CommentId, status: CommentStatus, by: Option<Moderator>, reason: Arc<str> },
    Lock { parent: Parent, locked: bool },
    PostDeletion(Id),
}

/// An operation that may or may not have happened.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    pub asked: Asked,
    /// What its caller had seen before.
    pub after: Frontier,
}

impl Unknown {
    /// Whether it can have made a change. `text` is what the comment said then, where that is known.
    pub(crate) fn generated(&self, change: &Change, text: Option<&Arc<str>>) -> bool {
        if self.after.covers(change.position) {
            return false;
        }
        match (&self.asked, &change.body) {
            (
                Asked::Comment(request),
                ChangeBody::Comment(CommentChange::Written { parent, author, reply_to, .. }),
            ) => {
                (request.parent, request.author, request.reply_to) == (*parent, *author, *reply_to)
                    && text == Some(&request.body)
            }
            (Asked::Edit(edit), ChangeBody::Comment(CommentChange::Edited { id, version, .. })) => {
                (edit.id, edit.version + 1) == (*id, *version) && text.is_none_or(|text| *text == edit.body)
            }
            (
                Asked::Withdrawal { id, status, by, .. },
                ChangeBody::Comment(CommentChange::Withdrawn {
                    id: of, status: reported, by: told_by, ..
                }),
            ) => (id, status, by) == (of, reported, told_by),
            (
                Asked::Lock { parent, locked },
                ChangeBody::Comment(CommentChange::Locked { parent: of, locked: reported }),
            ) => (parent, locked) == (of, reported),
            (Asked::PostDeletion(id), ChangeBody::PostDeleted { id: of, .. }) => id == of,
            _ => false,
        }
    }
}

/// The changes that no acknowledgement names, without posts. Every position that was acknowledged must be in the log, and belongs
/// to one acknowledgement.
pub(crate) fn unclaimed<'a>(
    acknowledged: &[Position],
    changes: &'a [Change],
) -> Result<Vec<&'a Change>, String> {
    let claimed: HashSet<Position> = acknowledged.iter().copied().collect();
    let logged: HashSet<Position> = changes.iter().map(|change| change.position).collect();
    if (claimed.len(), logged.len()) != (acknowledged.len(), changes.len()) {
        return Err("a position was acknowledged twice, or is in the log twice".to_owned());
    }
    if let Some(lost) = claimed.difference(&logged).next() {
        return Err(format!("{lost} was acknowledged, but is not in the log"));
    }
    let is_post = |change: &Change| matches!(change.body, ChangeBody::Posted { .. });
    Ok(changes.iter().filter(|change| !claimed.contains(&change.position) && !is_post(change)).collect())
}
