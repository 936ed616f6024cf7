//! Threads as trees: some branches of each comment, level by level, and a cursor for each branch that goes on.

use super::cursor::CommentList;
use super::operations::{CommentThreads, Filling, PART, shown, take_turns, text_bytes};
use super::{Branch, Comment, CommentId, CommentSettings, CommentStore, Parent, Viewer};
use crate::feeds::PostStore;
use crate::{Error, Frontier, PageRequest, Result};

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

/// How much more an answer may hold.
struct Room {
    comments: usize,
    bytes: usize,
}

impl<S: CommentStore + PostStore> CommentThreads<S> {
    /// A part of a thread as a tree: from the top, or from where a cursor of a branch points. An answer has as many comments
    /// as is allowed in all; branches that have no room have a cursor only.
    pub async fn comment_tree(
        &self,
        parent: Parent,
        shape: TreeShape,
        page: PageRequest<'_>,
        (viewer, at_least): (Viewer, &Frontier),
    ) -> Result<CommentTree> {
        self.context.require_ids(&[parent.id])?;
        self.context.require_limit(shape.replies)?;
        let depth_max = self.settings.depth_max;
        if shape.depth > depth_max {
            return Err(Error::InvalidRequest {
                detail: format!("the depth of a tree is at most {depth_max}"),
            });
        }
        let list = CommentList::Branches(parent);
        let place: Option<[u128; 2]> = self.place(list, page)?;
        self.require_parent(parent, at_least).await?;
        let [reply_to, after] = place.unwrap_or_default().map(|id| (id != 0).then_some(CommentId(id)));
        let first = Branch { parent, reply_to, after };

        let CommentSettings { tree_comments_max, page_bytes_max, .. } = self.settings;
        let mut filling = Filling::new(page.limit.min(tree_comments_max), page_bytes_max);
        while let Some(wanted) = filling.wanted() {
            let after = filling.items.last().map(|last: &Comment| last.id).or(first.after);
            let found = self.store().replies(&[Branch { after, ..first }], wanted, at_least).await?;
            filling.add(wanted, found.into_iter().flatten().collect(), text_bytes);
            take_turns().await;
        }
        let mut room = Room { comments: tree_comments_max, bytes: page_bytes_max };
        let (mut nodes, next) = self.take_branch(first, filling, &mut room, viewer);
        let top = 0..nodes.len();
        let mut level = top.clone();
        for _ in 0..shape.depth {
            let answered: Vec<usize> = level.filter(|&at| nodes[at].comment.reply_count > 0).collect();
            level = nodes.len()..nodes.len();
            // So many branches at a time that together they are about as long as a part of a list.
            for some in answered.chunks((PART / shape.replies).max(1)) {
                self.grow(parent, some, (&mut nodes, &mut room), (shape.replies, viewer), at_least).await?;
                take_turns().await;
            }
            level.end = nodes.len();
        }
        self.leave_cursors(parent, &mut nodes);
        let mut nodes: Vec<_> = nodes.into_iter().map(Some).collect();
        Ok(CommentTree { items: assemble(&mut nodes, top), next })
    }

    /// Puts replies under some comments, as far as there is room; what has none is left to its cursor.
    async fn grow(
        &self,
        parent: Parent,
        answered: &[usize],
        (nodes, room): (&mut Vec<Growing>, &mut Room),
        (replies, viewer): (usize, Viewer),
        at_least: &Frontier,
    ) -> Result<()> {
        let (mut branches, mut left) = (Vec::new(), room.comments);
        for &at in answered {
            let Comment { id, reply_count, .. } = nodes[at].comment;
            let shown = usize::try_from(reply_count).map_or(replies, |count| count.min(replies));
            if shown <= left && room.bytes > 0 {
                left -= shown;
                branches.push((at, Branch { parent, reply_to: Some(id), after: None }));
            }
        }
        let wanted: Vec<Branch> = branches.iter().map(|&(_, branch)| branch).collect();
        let found = self.store().replies(&wanted, replies + 1, at_least).await?;
        for ((at, branch), found) in branches.into_iter().zip(found) {
            // More may have come than were counted before.
            let mut filling = Filling::new(replies.min(room.comments), room.bytes);
            if room.bytes > 0 && room.comments > 0 {
                filling.add(replies + 1, found, text_bytes);
            }
            let (children, next) = self.take_branch(branch, filling, room, viewer);
            nodes[at].children = nodes.len()..nodes.len() + children.len();
            nodes[at].next = next;
            nodes.extend(children);
        }
        Ok(())
    }

    /// The nodes of what is taken of a branch, and the cursor if it goes on.
    fn take_branch(
        &self,
        branch: Branch,
        filling: Filling<Comment>,
        room: &mut Room,
        viewer: Viewer,
    ) -> (Vec<Growing>, Option<String>) {
        let next = filling.items.last().filter(|_| filling.more);
        let next = next.map(|last| self.branch_cursor(branch.parent, branch.reply_to, Some(last.id)));
        room.comments = room.comments.saturating_sub(filling.items.len());
        room.bytes = room.bytes.saturating_sub(filling.items.iter().map(text_bytes).sum());
        let grow = |comment| Growing { comment: shown(comment, viewer), children: 0..0, next: None };
        (filling.items.into_iter().map(grow).collect(), next)
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
        CommentList::Branches(parent).encode([number(reply_to), number(after)], &self.context.keys)
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
