//! What the settings of comments mean to the graph. How they are kept is the store's business.

use kinfolk_core::comments::CommentSettings;

use super::Comments;

/// How much of a request a character may take: two escapes of six bytes.
const CHAR_BYTES_MAX: usize = 12;
/// How much else there is in a request with a comment.
const ENVELOPE_BYTES_MAX: usize = 4 << 10;

impl Comments {
    /// The rules of the graph.
    pub fn rules(&self) -> CommentSettings {
        CommentSettings {
            body_chars_max: self.body_chars_max.0 as usize,
            // Bounded to far less where it is read.
            depth_max: u8::try_from(self.depth_max.0).unwrap_or(u8::MAX),
            ..CommentSettings::default()
        }
    }

    /// How many bytes a request with the longest comment has at most.
    pub fn request_bytes_max(&self) -> usize {
        self.body_chars_max.0 as usize * CHAR_BYTES_MAX + ENVELOPE_BYTES_MAX
    }
}
