//! Comment threads as trees: the first replies to each comment, level by level, and a cursor for each branch that continues.

use super::cursor::CommentList;
use super::operations::{CHUNK, CommentThreads, PageBuilder, body_bytes, redact, yield_now};
use super::{Branch, Comment, CommentId, CommentSettings, CommentStore, Parent, Viewer};
use crate::feeds::PostStore;
use crate::{Error, Frontier, Page, PageRequest, Result};

/// The size of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// The number of levels below the first; 0 for none.
    pub depth: u8,
    /// The maximum number of replies to each comment.
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
    /// The cursor of the replies after these; `None` if there are none.
    pub next: Option<String>,
}

/// A part of a comment thread, as a tree.
pub type CommentTree = Page<CommentNode>;

/// A node during construction: its children have higher indexes in the list of nodes.
struct TreeNode {
    comment: Comment,
    children: std::ops::Range<usize>,
    next: Option<String>,
}

/// A tree during construction.
struct TreeBuilder {
    nodes: Vec<TreeNode>,
    /// The maximum number of replies to each comment.
    replies: usize,
    viewer: Viewer,
    comments_left: usize,
    bytes_left: usize,
}

impl<S: CommentStore + PostStore> CommentThreads<S> {
    /// A part of a thread as a tree: from the top, or from the cursor of a branch. The number of comments is limited; branches
    /// beyond the limit have only a cursor.
    pub async fn comment_tree(
        &self,
        parent: Parent,
        shape: TreeShape,
        page: PageRequest<'_>,
        viewer: Viewer,
        at_least: &Frontier,
    ) -> Result<CommentTree> {
        self.context.require_ids(&[parent.id])?;
        self.context.require_limit(shape.replies)?;
        let depth_max = self.settings.depth_max;
        if shape.depth > depth_max {
            return Err(Error::InvalidRequest {
                detail: format!("the depth of a tree is at most {depth_max}"),
            });
        }
        let key: Option<[u128; 2]> = self.after(CommentList::Branches(parent), page)?;
        self.require_parent(parent, at_least).await?;
        let [reply_to, after] = key.unwrap_or_default().map(|id| (id != 0).then_some(CommentId(id)));
        let top = Branch { parent, reply_to, after };

        let CommentSettings { tree_comments_max, page_bytes_max, .. } = self.settings;
        let top_page = self.top_page(top, page.limit.min(tree_comments_max), at_least).await?;
        let mut tree = TreeBuilder {
            nodes: Vec::new(),
            replies: shape.replies,
            viewer,
            comments_left: tree_comments_max,
            bytes_left: page_bytes_max,
        };
        let (mut level, next) = self.add_branch(&mut tree, top, top_page);
        let top = level.clone();
        for _ in 0..shape.depth {
            let with_replies: Vec<usize> =
                level.filter(|&at| tree.nodes[at].comment.reply_count > 0).collect();
            level = tree.nodes.len()..tree.nodes.len();
            // As many branches at a time as make about one chunk.
            for some in with_replies.chunks((CHUNK / shape.replies).max(1)) {
                self.add_replies(&mut tree, parent, some, at_least).await?;
                yield_now().await;
            }
            level.end = tree.nodes.len();
        }
        self.add_cursors(&mut tree, parent);
        let mut nodes: Vec<_> = tree.nodes.into_iter().map(Some).collect();
        Ok(CommentTree { items: assemble(&mut nodes, top), next })
    }

    /// The comments of the top branch.
    async fn top_page(&self, top: Branch, limit: usize, at_least: &Frontier) -> Result<PageBuilder<Comment>> {
        let mut comments = PageBuilder::new(limit, self.settings.page_bytes_max);
        while let Some(wanted) = comments.wanted() {
            let after = comments.items.last().map(|last: &Comment| last.id).or(top.after);
            let found = self.store().replies(&[Branch { after, ..top }], wanted, at_least).await?;
            comments.add(wanted, found.into_iter().flatten().collect(), body_bytes);
            yield_now().await;
        }
        Ok(comments)
    }

    /// Adds replies to the comments at some indexes, within the limits of the tree.
    async fn add_replies(
        &self,
        tree: &mut TreeBuilder,
        parent: Parent,
        indexes: &[usize],
        at_least: &Frontier,
    ) -> Result<()> {
        let replies = tree.replies;
        let (mut branches, mut left) = (Vec::new(), tree.comments_left);
        for &at in indexes {
            let Comment { id, reply_count, .. } = tree.nodes[at].comment;
            let count = usize::try_from(reply_count).map_or(replies, |count| count.min(replies));
            if count <= left && tree.bytes_left > 0 {
                left -= count;
                branches.push((at, Branch { parent, reply_to: Some(id), after: None }));
            }
        }
        let wanted: Vec<Branch> = branches.iter().map(|&(_, branch)| branch).collect();
        let found = self.store().replies(&wanted, replies + 1, at_least).await?;
        for ((at, branch), found) in branches.into_iter().zip(found) {
            // There may be more replies than were counted before.
            let mut comments = PageBuilder::new(replies.min(tree.comments_left), tree.bytes_left);
            if tree.bytes_left > 0 && tree.comments_left > 0 {
                comments.add(replies + 1, found, body_bytes);
            }
            let (children, next) = self.add_branch(tree, branch, comments);
            tree.nodes[at].children = children;
            tree.nodes[at].next = next;
        }
        Ok(())
    }

    /// Adds the comments of a branch to the tree. Returns their indexes, and the cursor if the branch continues.
    fn add_branch(
        &self,
        tree: &mut TreeBuilder,
        branch: Branch,
        page: PageBuilder<Comment>,
    ) -> (std::ops::Range<usize>, Option<String>) {
        let next = page.items.last().filter(|_| page.has_more);
        let next = next.map(|last| self.branch_cursor(Branch { after: Some(last.id), ..branch }));
        tree.comments_left = tree.comments_left.saturating_sub(page.items.len());
        tree.bytes_left = tree.bytes_left.saturating_sub(page.items.iter().map(body_bytes).sum());
        let first = tree.nodes.len();
        let viewer = tree.viewer;
        let node = |comment| TreeNode { comment: redact(comment, viewer), children: 0..0, next: None };
        tree.nodes.extend(page.items.into_iter().map(node));
        (first..tree.nodes.len(), next)
    }

    /// Adds a cursor to each comment whose replies are not in the tree.
    fn add_cursors(&self, tree: &mut TreeBuilder, parent: Parent) {
        for node in &mut tree.nodes {
            if node.children.is_empty() && node.comment.reply_count > 0 {
                let reply_to = Some(node.comment.id);
                node.next = Some(self.branch_cursor(Branch { parent, reply_to, after: None }));
            }
        }
    }

    fn branch_cursor(&self, Branch { parent, reply_to, after }: Branch) -> String {
        let number = |id: Option<CommentId>| id.map_or(0, |id| id.0);
        CommentList::Branches(parent).encode([number(reply_to), number(after)], &self.context.keys)
    }
}

/// Moves nodes and their children into a tree. The recursion is at most as deep as comments may be nested.
fn assemble(nodes: &mut [Option<TreeNode>], range: std::ops::Range<usize>) -> Vec<CommentNode> {
    let taken: Vec<TreeNode> = nodes[range].iter_mut().filter_map(Option::take).collect();
    let assembled = taken.into_iter().map(|TreeNode { comment, children, next }| CommentNode {
        comment,
        replies: assemble(nodes, children),
        next,
    });
    assembled.collect()
}
