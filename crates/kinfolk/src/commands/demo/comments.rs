//! Writes the comments of the demo, changes some of them, and locks threads. What they say is in `discussions`.

use anyhow::Result;
use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentStore, CommentThreads, Moderator, NewComment, Parent,
};
use kinfolk_core::feeds::{Post, PostStore};
use kinfolk_core::{Frontier, Id};

use super::cast::Cast;
use super::discussions::{DISCUSSIONS, Discussion, Ending, Fate, Remark, Voice};
use super::posts::titled;
use crate::client::LocalGraph;

/// How many comments further down each level of replies is written, so that branches alternate.
const REPLY_DELAY: usize = 8;
/// The key of the service that purges.
const PURGED_BY: &str = "trust-and-safety";

/// Writes all discussions.
pub(super) fn write(open: &LocalGraph, cast: &Cast, posts: &[Post]) -> Result<()> {
    let comments = open.comments()?;
    for discussion in DISCUSSIONS {
        let post = titled(posts, discussion.post).expect("every discussion is about one of the posts");
        Thread { open, comments: &comments, cast, post }.write(discussion)?;
    }
    Ok(())
}

/// A thread that is being written.
struct Thread<'a, S> {
    open: &'a LocalGraph,
    comments: &'a CommentThreads<S>,
    cast: &'a Cast,
    post: &'a Post,
}

impl<S: CommentStore + PostStore> Thread<'_, S> {
    fn write(&self, &Discussion { remarks, ending, .. }: &Discussion) -> Result<()> {
        let mut order: Vec<usize> = (0..remarks.len()).collect();
        order.sort_by_key(|&at| at + REPLY_DELAY * remarks[at].depth);
        let mut ids: Vec<Option<CommentId>> = vec![None; remarks.len()];
        for at in order {
            // It is written already: its place is earlier, and its delay is shorter.
            let parent = (0..at).rev().find(|&above| remarks[above].depth < remarks[at].depth);
            ids[at] = Some(self.comment(&remarks[at], parent.and_then(|parent| ids[parent]))?);
        }
        for (remark, id) in remarks.iter().zip(ids.into_iter().flatten()) {
            self.change(remark, id)?;
        }
        match ending {
            Ending::Open => {}
            Ending::Locked => self.lock(true)?,
            Ending::Reopened => {
                self.lock(true)?;
                self.lock(false)?;
            }
        }
        Ok(())
    }

    fn comment(&self, remark: &Remark, reply_to: Option<CommentId>) -> Result<CommentId> {
        let (parent, author, body) = (Parent::post(self.post.id), self.author(remark.by), remark.body.into());
        let new = NewComment { parent, author, body, reply_to, idempotency_key: None, depth_max: 0 };
        Ok(self.open.run(self.comments.comment(new))?.comment.id)
    }

    fn change(&self, remark: &Remark, id: CommentId) -> Result<()> {
        let (comments, author) = (self.comments, Some(self.author(remark.by)));
        match remark.fate {
            Fate::Kept => {}
            Fate::Edited(bodies) => {
                for (version, &body) in (1..).zip(bodies) {
                    let edit = CommentEdit { id, version, body: body.into() };
                    self.open.run(comments.edit_comment(author, edit, Frontier::EMPTY))?;
                }
            }
            Fate::Deleted => {
                self.open.run(comments.delete_comment(author, id, Frontier::EMPTY))?;
            }
            Fate::Removed(reason) => {
                let moderator = Moderator::User(self.post.author);
                self.open.run(comments.remove_comment(id, reason.into(), Some(moderator)))?;
            }
            Fate::Purged => {
                let moderator = Moderator::Service(PURGED_BY.into());
                self.open.run(comments.purge_comment(id, Some(moderator)))?;
            }
        }
        Ok(())
    }

    fn lock(&self, locked: bool) -> Result<()> {
        self.open.run(self.comments.lock_comment_thread(Parent::post(self.post.id), locked))?;
        Ok(())
    }

    fn author(&self, voice: Voice) -> Id {
        match voice {
            Voice::Author => self.post.author,
            Voice::Fan => self.cast.fan,
            Voice::Celebrity => self.cast.celebrity,
            Voice::Other(number) => self.cast.commenter(number),
        }
    }
}
