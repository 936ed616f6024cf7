//! Threads as trees: some branches of each comment, level by level, and a cursor for each branch that goes on.

use super::cursor::CommentList;
use super::operations::shown;
use super::{Branch, Comment, CommentId, Parent, ThreadStore, Viewer};
use crate::graph::{ChangeLog, Freshness, Graph, PageRequest};
use crate::{Error, Result};

/// How much of a tree is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// How many levels of replies below the first; 0 for none.
    pub depth: u8,
    /// How many replies to each comment.
    pub replies: usize,
}

impl Default for TreeShape {
    fn default() -> Self {
        Self { depth: 3, replies: 3 }
    }
}

/// A comment and some of its replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentNode {
    /// The comment, or its tombstone.
    pub comment: Comment,
    /// The first replies to it, oldest first.
    pub replies: Vec<CommentNode>,
    /// The cursor for the replies after these, unless there are none.
    pub next: Option<String>,
}

/// A part of a thread, as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentTree {
    /// Comments of one branch, oldest first.
    pub items: Vec<CommentNode>,
    /// The cursor for those after them, unless there are none.
    pub next: Option<String>,
}

/// A node while the tree grows: its children are further along in the list.
struct Growing {
    comment: Comment,
    children: std::ops::Range<usize>,
    next: Option<String>,
}

impl<S: ThreadStore + ChangeLog> Graph<S> {
    /// A part of a thread as a tree: from the top, or from where a cursor of a branch points. An answer has as many comments
    /// as is allowed in all; branches that have no room have a cursor only.
    pub async fn comment_tree(
        &self,
        parent: Parent,
        shape: TreeShape,
        page: PageRequest<'_>,
        (viewer, fresh): (Viewer, Freshness<'_>),
    ) -> Result<CommentTree> {
        self.require_ids(&[parent.id])?;
        self.require_limit(page.limit)?;
        self.require_limit(shape.replies)?;
        let depth_max = self.settings.thread.depth_max;
        if shape.depth > depth_max {
            return Err(Error::InvalidRequest {
                detail: format!("the depth of a tree is at most {depth_max}"),
            });
        }
        let list = CommentList::Branches(parent);
        let place = page.cursor.map(|text| list.decode::<2>(text, &self.keys)).transpose()?;
        self.await_freshness(fresh).await?;
        self.require_parent(parent).await?;
        let [reply_to, after] = place.unwrap_or_default().map(|id| (id != 0).then_some(CommentId(id)));
        let first = Branch { parent, reply_to, after };

        let mut room = self.settings.thread.tree_comments_max;
        let limit = page.limit.min(room);
        let found = self.store().replies(&[first], limit + 1).await?.into_iter().next().unwrap_or_default();
        let (mut nodes, next) = self.take_branch(first, found, limit, viewer);
        room -= nodes.len();
        let top = 0..nodes.len();
        let mut level = top.clone();
        for _ in 0..shape.depth {
            let answered: Vec<usize> = level.filter(|&at| nodes[at].comment.reply_count > 0).collect();
            level = nodes.len()..nodes.len();
            let branch = |&at: &usize| Branch { parent, reply_to: Some(nodes[at].comment.id), after: None };
            // What has no room is left to its cursor.
            let branches: Vec<Branch> = answered.iter().take(room / shape.replies).map(branch).collect();
            if branches.is_empty() {
                break;
            }
            let found = self.store().replies(&branches, shape.replies + 1).await?;
            for ((at, branch), found) in answered.into_iter().zip(branches).zip(found) {
                let (children, next) = self.take_branch(branch, found, shape.replies, viewer);
                room -= children.len();
                nodes[at].children = nodes.len()..nodes.len() + children.len();
                nodes[at].next = next;
                nodes.extend(children);
            }
            level.end = nodes.len();
        }
        self.leave_cursors(parent, &mut nodes);
        let mut nodes: Vec<_> = nodes.into_iter().map(Some).collect();
        Ok(CommentTree { items: assemble(&mut nodes, top), next })
    }

    /// The nodes of what was found in a branch, one more than wanted if it goes on, and the cursor then.
    fn take_branch(
        &self,
        branch: Branch,
        mut found: Vec<Comment>,
        wanted: usize,
        viewer: Viewer,
    ) -> (Vec<Growing>, Option<String>) {
        let more = found.len() > wanted;
        found.truncate(wanted);
        let next = found.last().filter(|_| more);
        let next = next.map(|last| self.branch_cursor(branch.parent, branch.reply_to, Some(last.id)));
        let grow = |comment| Growing { comment: shown(comment, viewer), children: 0..0, next: None };
        (found.into_iter().map(grow).collect(), next)
    }

    /// Comments whose replies are not shown at all get a cursor for all of them.
    fn leave_cursors(&self, parent: Parent, nodes: &mut [Growing]) {
        for node in nodes.iter_mut() {
            if node.children.is_empty() && node.comment.reply_count > 0 {
                node.next = Some(self.branch_cursor(parent, Some(node.comment.id), None));
            }
        }
    }

    fn branch_cursor(&self, parent: Parent, reply_to: Option<CommentId>, after: Option<CommentId>) -> String {
        let number = |id: Option<CommentId>| id.map_or(0, |id| id.0);
        CommentList::Branches(parent).encode([number(reply_to), number(after)], &self.keys)
    }
}

/// Puts children under those whom they answer. At most as deep as comments may be.
fn assemble(nodes: &mut [Option<Growing>], range: std::ops::Range<usize>) -> Vec<CommentNode> {
    let taken: Vec<Growing> = nodes[range].iter_mut().filter_map(Option::take).collect();
    let grown = taken.into_iter().map(|Growing { comment, children, next }| CommentNode {
        comment,
        replies: assemble(nodes, children),
        next,
    });
    grown.collect()
}
