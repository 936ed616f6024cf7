//! Replies as bytes, in version 2 or 3 of the protocol. Sends nothing.

use std::io::Write;

use kinfolk_core::{Error, Id};

use crate::internal_error::Shown;

/// The version of the protocol that a client has requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    Two,
    Three,
}

impl Version {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// Replies that wait to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub bytes: Vec<u8>,
    pub version: Version,
}

impl Output {
    /// A short text without line breaks.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    pub(crate) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    pub(crate) fn error(&mut self, error: &Error) {
        self.bytes.push(b'-');
        self.bytes.extend_from_slice(error.code().resp_prefix().as_bytes());
        self.bytes.push(b' ');
        let start = self.bytes.len();
        let _ = write!(self.bytes, "{}", Shown(error));
        let message = self.bytes.get_mut(start..).unwrap_or_default();
        for byte in message.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')) {
            *byte = b' ';
        }
        self.line_break();
    }

    pub(crate) fn integer(&mut self, value: impl itoa::Integer) {
        self.number(b':', value);
    }

    /// Whether something is so, as Redis says it in both versions: 1 or 0.
    pub(crate) fn flag(&mut self, value: bool) {
        self.bytes.extend_from_slice(if value { b":1\r\n" } else { b":0\r\n" });
    }

    pub(crate) fn bulk(&mut self, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        self.number(b'$', value.len());
        self.bytes.extend_from_slice(value);
        self.line_break();
    }

    /// Text for people.
    pub(crate) fn verbatim(&mut self, text: &str) {
        match self.version {
            Version::Two => self.bulk(text),
            Version::Three => {
                self.number(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.line_break();
            }
        }
    }

    pub(crate) fn id(&mut self, id: Id) {
        const UUID_LEN: u64 = 36;
        match id {
            Id::Integer(value) => self.bulk(itoa::Buffer::new().format(value)),
            Id::Uuid(_) => {
                self.number(b'$', UUID_LEN);
                let _ = write!(self.bytes, "{id}");
                self.line_break();
            }
        }
    }

    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        });
    }

    /// An array that is not there.
    pub(crate) fn null_array(&mut self) {
        match self.version {
            Version::Two => self.bytes.extend_from_slice(b"*-1\r\n"),
            Version::Three => self.null(),
        }
    }

    /// The start of an array: this number of replies follow as its elements.
    pub(crate) fn array(&mut self, elements: usize) {
        self.number(b'*', elements);
    }

    /// The start of a message that is no reply. Only version 3 has it.
    pub(crate) fn push(&mut self, elements: usize) {
        self.number(b'>', elements);
    }

    /// The start of a map: twice this number of replies follow, keys and values alternating.
    pub(crate) fn map(&mut self, entries: usize) {
        match self.version {
            Version::Two => self.array(entries * 2),
            Version::Three => self.number(b'%', entries),
        }
    }

    /// The start of a set.
    pub(crate) fn set(&mut self, members: usize) {
        match self.version {
            Version::Two => self.array(members),
            Version::Three => self.number(b'~', members),
        }
    }

    /// A whole array of ids, in their order.
    pub(crate) fn id_list(&mut self, ids: &[Id]) {
        self.array(ids.len());
        ids.iter().for_each(|&id| self.id(id));
    }

    /// A number that is not whole.
    pub(crate) fn double(&mut self, value: f64) {
        let text = value.to_string();
        match self.version {
            Version::Two => self.bulk(text),
            Version::Three => self.line(b',', text.as_bytes()),
        }
    }

    /// A bulk string, or null if it is missing.
    pub(crate) fn bulk_or_null(&mut self, value: Option<impl AsRef<[u8]>>) {
        match value {
            Some(value) => self.bulk(value),
            None => self.null(),
        }
    }

    /// A whole set of ids.
    pub(crate) fn ids(&mut self, ids: &[Id]) {
        self.set(ids.len());
        ids.iter().for_each(|&id| self.id(id));
    }

    fn number(&mut self, mark: u8, value: impl itoa::Integer) {
        self.line(mark, itoa::Buffer::new().format(value).as_bytes());
    }

    fn line(&mut self, mark: u8, text: &[u8]) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(text);
        self.line_break();
    }

    fn line_break(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;
    use proptest::prelude::*;
    use redis_protocol::{resp2, resp3};

    use super::*;

    fn written(version: Version, write: impl FnOnce(&mut Output)) -> Vec<u8> {
        let mut out = Output { bytes: Vec::new(), version };
        write(&mut out);
        out.bytes
    }

    /// One reply of every shape, nested.
    fn everything(out: &mut Output, text: &str, number: u64) {
        out.array(9);
        out.simple("PONG");
        out.bulk(text);
        out.integer(number as i64);
        out.null();
        out.map(1);
        out.bulk("key");
        out.array(0);
        out.ids(&[Id::Integer(number), Id::Uuid(number.into())]);
        out.verbatim(text);
        out.null_array();
        out.error(&Error::InvalidRequest { detail: text.to_owned() });
    }

    proptest! {
        #[test]
        fn others_read_what_is_written(text in any::<String>(), number in any::<u64>()) {
            let bytes = written(Version::Two, |out| everything(out, &text, number));
            let (frame, length) = resp2::decode::decode(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            let resp2::types::OwnedFrame::Array(elements) = frame else { panic!("not an array") };
            prop_assert_eq!(&elements[1], &resp2::types::OwnedFrame::BulkString(text.clone().into_bytes()));
            prop_assert_eq!(&elements[2], &resp2::types::OwnedFrame::Integer(number as i64));
            prop_assert_eq!(elements.len(), 9);

            let bytes = written(Version::Three, |out| everything(out, &text, number));
            let (frame, length) = resp3::decode::complete::decode(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            let resp3::types::OwnedFrame::Array { data, .. } = frame else { panic!("not an array") };
            assert!(matches!(&data[4], resp3::types::OwnedFrame::Map { .. }));
            assert!(matches!(&data[5], resp3::types::OwnedFrame::Set { .. }));
            assert!(matches!(&data[6], resp3::types::OwnedFrame::VerbatimString { .. }));
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let error = Error::InvalidRequest { detail: "a\r\n+OK\r\n".to_owned() };
        assert_eq!(written(Version::Two, |out| out.error(&error)), b"-ERR a  +OK  \r\n");
        assert_eq!(error.code(), ErrorCode::InvalidRequest);
        let error = Error::WrongKey;
        assert!(written(Version::Two, |out| out.error(&error)).starts_with(b"-WRONGTYPE "));
    }
}
