//! Reads fields one after another: of events in the log, rows in the trees and records in a backup. Each gives `None` where the bytes
//! are too short or not valid.

use kinfolk_core::comments::{CommentId, Moderator, Parent, ParentKind};
use kinfolk_core::{Id, IdKind};

/// Bytes that are read from the front.
pub(crate) struct ByteReader<'a> {
    /// The kind of ids.
    pub ids: IdKind,
    /// What is left.
    pub bytes: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// The next bytes.
    pub(crate) fn take<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    /// As many bytes as that.
    pub(crate) fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    /// An id.
    pub(crate) fn id(&mut self) -> Option<Id> {
        let length = self.ids.id_len();
        self.ids.read(self.slice(length)?)
    }

    /// The id of a comment.
    pub(crate) fn comment_id(&mut self) -> Option<CommentId> {
        self.take().map(|bytes| CommentId(u128::from_be_bytes(bytes)))
    }

    /// A parent of comments.
    pub(crate) fn parent(&mut self) -> Option<Parent> {
        let [kind] = self.take()?;
        Some(Parent { kind: ParentKind::from_number(kind)?, id: self.id()? })
    }

    /// A length u32, little-endian, and as many bytes.
    pub(crate) fn length_and_bytes(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.take()?);
        self.slice(length as usize)
    }

    /// A length and a string.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.length_and_bytes()?).ok()
    }

    /// A moderator: 1u8 and the id of a user, or 2u8 and the name of a key.
    pub(crate) fn moderator(&mut self) -> Option<Moderator> {
        match self.take()? {
            [1] => self.id().map(Moderator::User),
            [2] => self.string().map(|key| Moderator::Service(key.into())),
            _ => None,
        }
    }
}

/// Appends a length (4 bytes, little-endian) and the bytes, which [`ByteReader::length_and_bytes`] reads.
pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
