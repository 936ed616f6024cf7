//! User ids: 63-bit integers or UUIDs, one kind per deployment. Parsing and printing only; no storage layout.

use std::fmt;

use crate::names::names;
use crate::{Error, Result, Timestamp};

/// The largest integer id: 63 bits, so that it fits a signed 64-bit column everywhere.
const INTEGER_MAX: u64 = i64::MAX as u64;

/// Which kind of id a deployment uses. Chosen when the deployment is created; the kinds never mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// Integers from 0 to 2^63 - 1, written in decimal.
    Integer,
    /// UUIDs, written in the hyphenated form.
    Uuid,
}

/// The id of a user. Ordered by value within its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// An integer id; [`Id::integer`] and [`IdKind::parse`] ensure that it is at most 2^63 - 1.
    Integer(u64),
    /// A UUID as its 128-bit value.
    Uuid(u128),
}

impl Id {
    /// An integer id, if it fits 63 bits.
    pub fn integer(value: u64) -> Result<Self> {
        if value <= INTEGER_MAX {
            Ok(Self::Integer(value))
        } else {
            Err(Error::InvalidId { input: value.to_string(), reason: "an integer id is at most 2^63 - 1" })
        }
    }

    /// The kind that this id belongs to.
    pub fn kind(self) -> IdKind {
        match self {
            Self::Integer(_) => IdKind::Integer,
            Self::Uuid(_) => IdKind::Uuid,
        }
    }

    /// Appends the 8 or 16 bytes of the id, big-endian, so that bytes sort as ids do.
    #[inline]
    pub fn push_to(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Integer(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Self::Uuid(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        }
    }
}

names! { IdKind { Integer => "integer", Uuid => "uuid" } }

impl IdKind {
    /// How many bytes [`Id::push_to`] appends.
    #[inline]
    pub fn id_len(self) -> usize {
        match self {
            Self::Integer => size_of::<u64>(),
            Self::Uuid => size_of::<u128>(),
        }
    }

    /// The id with exactly these bytes, as [`Id::push_to`] wrote them.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Option<Id> {
        match self {
            Self::Integer => bytes.try_into().ok().map(|bytes| Id::Integer(u64::from_be_bytes(bytes))),
            Self::Uuid => bytes.try_into().ok().map(|bytes| Id::Uuid(u128::from_be_bytes(bytes))),
        }
    }

    /// Reads an id of this kind; text of the other kind is refused.
    pub fn parse(self, text: &str) -> Result<Id> {
        self.parse_bytes(text.as_bytes())
    }

    /// As [`IdKind::parse`], for bytes from a file or a socket.
    #[inline]
    pub fn parse_bytes(self, text: &[u8]) -> Result<Id> {
        // Each kind by itself: the value then goes straight to where it is needed.
        match self {
            Self::Integer => match parse_integer(text) {
                Ok(value) => Ok(Id::Integer(value)),
                Err(reason) => Err(invalid(text, reason)),
            },
            Self::Uuid => match parse_uuid(text) {
                Ok(value) => Ok(Id::Uuid(value)),
                Err(reason) => Err(invalid(text, reason)),
            },
        }
    }

    /// Refuses an id of the other kind, and an integer that is too large.
    pub fn require(self, id: Id) -> Result<()> {
        match id {
            Id::Integer(value) if self == Self::Integer => Id::integer(value).map(|_| ()),
            Id::Uuid(_) if self == Self::Uuid => Ok(()),
            other => Err(Error::IdKindMismatch { expected: self.name(), input: other.to_string() }),
        }
    }
}

/// The maximum length of an integer id as text.
const INTEGER_TEXT_MAX: usize = 40;

/// So many digits never exceed the maximum.
const DIGITS_SAFE: usize = 18;

#[inline]
fn parse_integer(text: &[u8]) -> std::result::Result<u64, &'static str> {
    if text.is_empty() || text.len() > DIGITS_SAFE {
        return parse_long_integer(text);
    }
    let mut value: u64 = 0;
    for &byte in text {
        value = value * 10 + u64::from(digit_of(byte)?);
    }
    Ok(value)
}

#[inline]
fn digit_of(byte: u8) -> std::result::Result<u8, &'static str> {
    let digit = byte.wrapping_sub(b'0');
    if digit <= 9 {
        Ok(digit)
    } else {
        Err("expected a decimal integer, as this deployment uses integer ids")
    }
}

#[cold]
fn parse_long_integer(text: &[u8]) -> std::result::Result<u64, &'static str> {
    if text.is_empty() {
        return Err("an id cannot be empty");
    }
    // Leading zeros are allowed, but not without end: some ids are kept as they were written.
    if text.len() > INTEGER_TEXT_MAX {
        return Err("an integer id has at most 40 digits");
    }
    text.iter().try_fold(0, |value: u64, &byte| {
        let sum = value.checked_mul(10).zip(Some(digit_of(byte)?));
        let sum = sum.and_then(|(tens, digit)| tens.checked_add(u64::from(digit)));
        sum.filter(|&sum| sum <= INTEGER_MAX).ok_or("an integer id is at most 2^63 - 1")
    })
}

fn parse_uuid(text: &[u8]) -> std::result::Result<u128, &'static str> {
    const MALFORMED: &str = "expected a UUID such as 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b, \
                             as this deployment uses UUIDs";
    if text.len() != 36 {
        return Err(MALFORMED);
    }
    let mut value: u128 = 0;
    for (at, &byte) in text.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return Err(MALFORMED);
            }
            continue;
        }
        let digit = (byte as char).to_digit(16).ok_or(MALFORMED)?;
        value = value << 4 | u128::from(digit);
    }
    Ok(value)
}

#[cold]
fn invalid(text: &[u8], reason: &'static str) -> Error {
    Error::InvalidId { input: excerpt(text), reason }
}

/// At most 40 printable characters of the input, for an error message.
fn excerpt(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(text.get(..40).unwrap_or(text)).escape_debug().to_string();
    if text.len() > 40 { format!("{shown}…") } else { shown }
}

/// Generates ids for posts and comments that are written without one.
pub trait IdGenerator {
    /// The next id, for an object written at time `at`. Ids increase, and each `is_free`; an error of that check is returned.
    fn next_id(&mut self, at: Timestamp, is_free: &dyn Fn(Id) -> Result<bool>) -> Result<Id>;
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Integer(value) => value.fmt(out),
            Self::Uuid(value) => {
                let low = value as u64;
                let high = (value >> 64) as u64;
                write!(
                    out,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    high >> 32,
                    high >> 16 & 0xffff,
                    high & 0xffff,
                    low >> 48,
                    low & 0xffff_ffff_ffff
                )
            }
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

    #[test]
    fn integers_parse_and_print() {
        for (text, value) in [("0", 0), ("7", 7), ("007", 7), ("9223372036854775807", i64::MAX as u64)] {
            assert_eq!(IdKind::Integer.parse(text).unwrap(), Id::Integer(value));
        }
        assert_eq!(Id::Integer(42).to_string(), "42");
        assert!(Id::integer(1 << 63).is_err());
    }

    #[test]
    fn uuids_parse_and_print() {
        let id = IdKind::Uuid.parse(&UUID.to_uppercase()).unwrap();
        assert_eq!(id.to_string(), UUID);
    }

    #[test]
    fn malformed_ids_say_why() {
        for text in ["", "-1", "+1", "1.0", "9223372036854775808", "99999999999999999999999", "1 ", "x", UUID]
        {
            let error = IdKind::Integer.parse(text).unwrap_err();
            assert_eq!(error.code(), crate::ErrorCode::InvalidId, "{text:?}");
        }
        for text in ["", "1", "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5g"] {
            assert_eq!(IdKind::Uuid.parse(text).unwrap_err().code(), crate::ErrorCode::InvalidId, "{text:?}");
        }
        let long = "9".repeat(5_000);
        assert!(IdKind::Integer.parse(&long).unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn kinds_do_not_mix() {
        let error = IdKind::Uuid.require(Id::Integer(1)).unwrap_err();
        assert_eq!(error.code(), crate::ErrorCode::InvalidId);
        assert!(error.to_string().contains("uuid"), "{error}");
        assert!(IdKind::Integer.require(Id::Integer(1 << 63)).is_err());
    }
}
