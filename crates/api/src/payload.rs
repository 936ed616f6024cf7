//! Payloads of posts: any JSON, kept as the application wrote it. Which payloads a server accepts is not decided here.

use std::sync::Arc;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A payload: the text of a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload(pub Arc<str>);

impl Payload {
    /// The payload that a value serialises to.
    ///
    /// # Errors
    /// If the value has no form in JSON.
    pub fn from_value(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_string(value).map(Self::from)
    }

    /// Its JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads it as a value.
    ///
    /// # Errors
    /// If it is not the JSON of such a value.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }
}

impl From<String> for Payload {
    fn from(json: String) -> Self {
        Self(json.into())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = &*self.0;
        match serde_json::from_str::<&RawValue>(text) {
            // Line ends separate server-sent events, so the JSON of an event must not contain any.
            Ok(json) if !text.contains(['\n', '\r']) => json.serialize(serializer),
            // Stored by something else than this server: a string keeps the document around it valid.
            _ => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Box::<RawValue>::deserialize(deserializer)?.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_stay_valid_with_any_stored_payload() {
        for (text, expected) in [
            (r#"{"a":1.10}"#, r#"{"a":1.10}"#),
            ("no json", r#""no json""#),
            ("[1,\n2]", r#""[1,\n2]""#),
            ("1} , {", r#""1} , {""#),
        ] {
            assert_eq!(serde_json::to_string(&Payload(text.into())).unwrap(), expected);
        }
    }

    #[test]
    fn digits_survive() {
        let payload: Payload = serde_json::from_str(r#" {"a":1.10,"b":12345678901234567890123} "#).unwrap();
        assert_eq!(payload.as_str(), r#"{"a":1.10,"b":12345678901234567890123}"#);
        assert_eq!(Payload::from_value(&[1, 2]).unwrap().parse::<Vec<u8>>().unwrap(), [1, 2]);
    }
}
