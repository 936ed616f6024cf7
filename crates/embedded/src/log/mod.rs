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
mod spare;
mod sync;
mod writer;

pub(crate) use comment_events::{CommentHead, LoggedBody, LoggedCommentEvent, push_moderator, status_from};
pub(crate) use erase::{ERASING_FILE, blank};
pub(crate) use frame::{Event, EventBody, FrameBuilder};
pub(crate) use reader::LogReader;
pub(crate) use recovery::recover;
pub(crate) use retention::Retention;
pub(crate) use segment::Segment;
pub(crate) use writer::{LogSizes, LogWriter};
