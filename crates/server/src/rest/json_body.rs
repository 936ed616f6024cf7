//! JSON bodies of requests: ids of the deployment's kind, and errors that keep their code. The fields are up to the route.

use std::cell::Cell;
use std::fmt;

use kinfolk_core::{Error, Id, IdKind, Result};
use serde::de::{self, DeserializeSeed, Deserializer, Visitor};

/// Reads a body that is one object and nothing else.
///
/// # Errors
/// The error in `refused`, if there is one; otherwise the error of the parser.
pub(crate) fn read<'de, V: Visitor<'de>>(
    body: &'de [u8],
    object: V,
    refused: &Cell<Option<Error>>,
) -> Result<V::Value> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = json.deserialize_map(object);
    read.and_then(|read| json.end().map(|()| read)).map_err(|error| {
        let invalid = || Error::InvalidRequest { detail: format!("the body is not as expected: {error}") };
        refused.take().unwrap_or_else(invalid)
    })
}

/// The context that parts of a body are read in.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The kind of ids that this deployment uses.
    pub kind: IdKind,
    /// Holds the error that ends the parsing, if it is not one of the parser.
    pub refused: &'a Cell<Option<Error>>,
}

impl Reader<'_> {
    /// Returns the value, or ends the parsing with the error in `refused`.
    pub(crate) fn accept<T, E: de::Error>(self, read: Result<T>) -> std::result::Result<T, E> {
        read.map_err(|error| {
            let reason = E::custom(&error);
            self.refused.set(Some(error));
            reason
        })
    }
}

/// An id: a string or, where ids are integers, a number too.
pub(crate) struct IdInput<'a>(pub Reader<'a>);

impl<'de> DeserializeSeed<'de> for IdInput<'_> {
    type Value = Id;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Id, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for IdInput<'_> {
    type Value = Id;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an id: a string or an integer from 0 to 2^63 - 1")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Id, E> {
        self.0.accept(self.0.kind.parse(text))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<Id, E> {
        let of_kind = |id| self.0.kind.require(id).map(|()| id);
        self.0.accept(Id::integer(value).and_then(of_kind))
    }
}
