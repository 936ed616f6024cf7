//! Ids and times as JSON has them: strings. The values are those of `kinfolk-core`.

use std::fmt;
use std::str::FromStr;

use kinfolk_core::{Error, IdKind, Timestamp};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Declares a value of `kinfolk-core` that is a string in JSON.
macro_rules! text_type {
    ($(#[$meta:meta])* $name:ident($value:ty), $expecting:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $value);

        impl From<$value> for $name {
            fn from(value: $value) -> Self {
                Self(value)
            }
        }

        impl From<$name> for $value {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, out)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        out.write_str($expecting)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}

text_type! {
    /// The id of a user or a post: an integer from 0 to 2^63 - 1, or a UUID. A deployment uses one of the two kinds.
    Id(kinfolk_core::Id), "an id"
}

text_type! {
    /// The id of a comment: a UUID of version 7, whichever kind of ids users have.
    CommentId(kinfolk_core::comments::CommentId), "the id of a comment"
}

text_type! {
    /// A time in UTC: RFC 3339 with milliseconds.
    #[derive(Default)]
    Time(Timestamp), "a time in RFC 3339"
}

/// An id is recognised by its form.
impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let kind = if text.contains('-') { IdKind::Uuid } else { IdKind::Integer };
        kind.parse(text).map(Self)
    }
}

/// An integer id. Servers refuse those over 2^63 - 1.
impl From<u64> for Id {
    fn from(value: u64) -> Self {
        Self(kinfolk_core::Id::Integer(value))
    }
}

impl FromStr for CommentId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        kinfolk_core::comments::CommentId::parse(text).map(Self)
    }
}

impl FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || Error::InvalidRequest { detail: "expected a time in RFC 3339".into() };
        Timestamp::parse(text).map(Self).ok_or_else(invalid)
    }
}

/// A position in the change log as a string.
pub(crate) mod position {
    use std::borrow::Cow;

    use kinfolk_core::Position;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(position: &Position, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(position)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Position, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom(format!("expected a position such as 0-17, not {text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strings_and_recognised_by_their_form() {
        let uuid = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
        for text in ["0", "42", "9223372036854775807", uuid] {
            let json = format!("\"{text}\"");
            let id: Id = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
        }
        for json in ["\"\"", "\"x\"", "\"9223372036854775808\"", "\"0-0\"", "42", "null"] {
            assert!(serde_json::from_str::<Id>(json).is_err(), "{json}");
        }
        assert!(serde_json::from_str::<CommentId>("\"42\"").is_err());
        assert_eq!(uuid.parse::<CommentId>().unwrap().to_string(), uuid);
    }

    #[test]
    fn times_have_milliseconds() {
        let time: Time = serde_json::from_str("\"2026-11-15T09:00:00+01:00\"").unwrap();
        assert_eq!(serde_json::to_string(&time).unwrap(), "\"2026-11-15T08:00:00.000Z\"");
        assert!(serde_json::from_str::<Time>("\"yesterday\"").is_err());
    }
}
