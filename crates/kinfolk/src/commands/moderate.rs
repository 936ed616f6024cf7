//! Taking comments back: `delete-comment` for their authors; `remove-comment`, `purge-comment`, `lock-comments` and
//! `unlock-comments` for moderators.

use anyhow::Result;
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::comments::{CommentId, Withdrawal};

use super::write::Written;
use crate::answer::Outcome;
use crate::arguments::{parse_comment_id, parse_id};
use crate::context::Context;

/// What `delete-comment` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk delete-comment 1 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b\n\n\
    Its place and the replies to it stay. Deleting it again changes nothing and is a success.")]
pub struct DeleteArguments {
    /// Whose comment it is
    #[arg(value_name = "AUTHOR", value_parser = parse_id)]
    author: Id,
    /// Which comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
}

/// What `remove-comment` is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kinfolk remove-comment 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b 'advertising'\n\n\
    Its place and the replies to it stay; its text and the reason are for moderators only."
)]
pub struct RemoveArguments {
    /// Which comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    /// Why, for other moderators
    #[arg(value_name = "REASON")]
    reason: String,
    /// Which user moderates, for the record [default: the key that a server knows the caller by]
    #[arg(long, value_name = "USER", value_parser = parse_id)]
    moderator: Option<Id>,
}

/// What `purge-comment` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk purge-comment 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b\n\n\
    Nobody can read its texts from then on, not even moderators, and there is no way back. They are erased from the files\n\
    by 'kinfolk compact', or by the server itself within comments.erase_after. Backups that were made before have them.")]
pub struct PurgeArguments {
    /// Which comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    /// Which user moderates, for the record [default: the key that a server knows the caller by]
    #[arg(long, value_name = "USER", value_parser = parse_id)]
    moderator: Option<Id>,
}

/// What `lock-comments` and `unlock-comments` are given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk lock-comments 70\n\n\
    A thread that is locked takes no new comments; those that are there can be read, edited and deleted.")]
pub struct LockArguments {
    /// Which post
    #[arg(value_name = "POST", value_parser = parse_id)]
    post: Id,
}

impl DeleteArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        withdraw(context, Some(self.author), self.id, Withdrawal::Delete)
    }
}

impl RemoveArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        withdraw(context, self.moderator, self.id, Withdrawal::Remove(self.reason.into()))
    }
}

impl PurgeArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        withdraw(context, self.moderator, self.id, Withdrawal::Purge)
    }
}

impl LockArguments {
    pub fn run(self, locked: bool, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let done = target.lock_comment_thread(self.post, locked)?;
        target.close()?;
        let verb = if done.changed { "is" } else { "was already" };
        let state = if locked { "locked" } else { "open" };
        let said = format!("the thread of post {} {verb} {state}", self.post);
        context.print(&Written::new(done, said))?;
        Ok(Outcome::Done)
    }
}

fn withdraw(context: &Context, actor: Option<Id>, id: CommentId, withdrawal: Withdrawal) -> Result<Outcome> {
    let status = withdrawal.status().name();
    let target = context.place.open()?;
    let done = target.withdraw_comment(actor, id, withdrawal)?;
    target.close()?;
    let said = match done.changed {
        true => format!("comment {id} is {status}"),
        // It may have been something worse.
        false => format!("comment {id} was gone before"),
    };
    context.print(&Written::new(done, said))?;
    Ok(Outcome::Done)
}
