//! Comments: their types, port and operations, and the planning of writes.
//!
//! A comment thread is the append-only list of the comments of a parent. Kinfolk itself knows posts as parents; reviews of an
//! item and messages of a conversation have the same shape.

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
