//! Comment threads: what they are, the port that keeps them, and the operations on them.
//!
//! A thread is an append-only list of children of a parent. Posts are the parents that Kinfolk knows itself; reviews of an
//! item and messages in a conversation have the same shape.

mod cursor;
mod model;
mod operations;
mod plan;
mod ports;
mod text;
mod tree;

pub use model::{
    Branch, Comment, CommentChange, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentThreadState,
    CommentVersion, CommentWritten, Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
pub use operations::{CommentPage, CommentSettings, CommentThreads, HistoryPage, Viewer};
pub use plan::{CommentEvent, CommentPlanner, CommentView, PlannedComments};
pub use ports::CommentStore;
pub use tree::{CommentNode, CommentTree, TreeShape};
