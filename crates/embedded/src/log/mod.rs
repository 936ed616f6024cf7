//! The change log: the one place that an acknowledged write must have reached.
//!
//! A folder of segment files, appended to by one writer and synced before anything is acknowledged, and a mark
//! of what was synced, so that a damaged end can be distinguished from one that a crash tore.

mod comment_events;
mod erase;
mod frame;
mod mark;
mod reader;
mod recovery;
mod retention;
mod segment;
mod sync;
mod writer;

pub use comment_events::{
    CommentPlace, LoggedCommentEvent, LoggedText, push_moderator, push_parent, status_from, status_number,
};
pub use erase::{ERASING_FILE, blank};
pub use frame::{Event, EventBody, FrameBuilder};
pub use reader::LogReader;
pub use recovery::recover;
pub use retention::Retention;
pub use segment::Segment;
pub use writer::{LogSizes, LogWriter};
