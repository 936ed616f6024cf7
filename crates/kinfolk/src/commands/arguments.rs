//! Parsers of argument values that several commands take.

use std::sync::Arc;

use kinfolk_api as api;
use kinfolk_core::Id;
use kinfolk_core::comments::CommentId;

/// Parses a user or post id. Whether it has the graph's kind of ids, only the store knows.
pub(crate) fn parse_id(text: &str) -> Result<Id, String> {
    text.parse()
        .map(|id: api::Id| id.0)
        .map_err(|_| "an id is an integer from 0 to 2^63 - 1 or a UUID".to_owned())
}

/// Parses a comment id.
pub(crate) fn parse_comment_id(text: &str) -> Result<CommentId, String> {
    CommentId::parse(text).map_err(|_| "a comment id is a UUID".to_owned())
}

/// Parses an idempotency key. It must fit a header, so that a key means the same to a folder and a server.
pub(crate) fn parse_key(text: &str) -> Result<Arc<str>, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && text.trim() == text;
    if is_plain {
        Ok(text.into())
    } else {
        Err("a key is printable ASCII without leading or trailing spaces".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_recognised_by_their_form() {
        assert_eq!(parse_id("12"), Ok(Id::Integer(12)));
        assert_eq!(parse_id("00000000-0000-0000-0000-00000000000c"), Ok(Id::Uuid(12)));
        for text in ["", "x", "1.5", "9223372036854775808", "0-0", "١"] {
            assert!(parse_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_what_a_header_can_carry() {
        for key in ["a", "a b", "7f!"] {
            assert_eq!(parse_key(key).unwrap().as_ref(), key);
        }
        for key in [" a", "a ", "a\nb", "é"] {
            assert!(parse_key(key).is_err(), "{key:?}");
        }
    }
}
