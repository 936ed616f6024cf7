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
    Branch, Comment, CommentEdit, CommentId, CommentStatus, CommentVersion, Commented, Moderator, NewComment,
    Parent, ParentKind, ThreadChange, ThreadOrder, ThreadState, Withdrawal,
};
pub use operations::{CommentPage, CommentThreads, HistoryPage, ThreadSettings, Viewer, WrittenComment};
pub use plan::{CommentEvent, PlannedThreads, ThreadPlanner, ThreadView};
pub use ports::ThreadStore;
pub use tree::{CommentNode, CommentTree, TreeShape};
