//! Converts the settings of comments to those of `kinfolk-core`.

use kinfolk_core::comments::CommentSettings;

use super::Comments;

/// The maximum size of a character in JSON: two escapes of six bytes.
const CHAR_BYTES_MAX: usize = 12;
/// The rest of a request with a comment.
const ENVELOPE_BYTES_MAX: usize = 4 << 10;

impl Comments {
    /// The settings of the graph.
    pub(crate) fn rules(&self) -> CommentSettings {
        CommentSettings {
            body_chars_max: self.body_chars_max.0 as usize,
            // The setting is limited to far less.
            depth_max: u8::try_from(self.depth_max.0).unwrap_or(u8::MAX),
            ..CommentSettings::default()
        }
    }

    /// The maximum size in bytes of a request with a comment.
    pub(crate) fn request_bytes_max(&self) -> usize {
        self.body_chars_max.0 as usize * CHAR_BYTES_MAX + ENVELOPE_BYTES_MAX
    }
}
