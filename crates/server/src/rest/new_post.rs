//! The body of a new post, validated as it is read. Whether the caller may post for its author is not decided here.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use kinfolk_core::{Id, IdKind, Result, Timestamp};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json_body::{self, IdInput, Reader};
use crate::payload;

/// The fields of a new post; each may be missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PostBody {
    /// Its id.
    pub id: Option<Id>,
    /// Its author.
    pub author: Option<Id>,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// Its payload, without blanks.
    pub payload: Option<Arc<str>>,
}

/// Reads `{"id"?, "author"?, "created_at"?, "payload"?}`.
///
/// # Errors
/// If it is anything else, an id is not of that kind, or the payload is too long.
pub(crate) fn parse(body: &[u8], kind: IdKind, payload_bytes_max: usize) -> Result<PostBody> {
    let refused = Cell::new(None);
    let reader = Reader { kind, refused: &refused };
    json_body::read(body, Body { reader, payload_bytes_max }, &refused)
}

struct Body<'a> {
    reader: Reader<'a>,
    payload_bytes_max: usize,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Id,
    Author,
    CreatedAt,
    Payload,
}

impl<'de> Visitor<'de> for Body<'_> {
    type Value = PostBody;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with the fields of a post")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<PostBody, A::Error> {
        let (mut id, mut author, mut created_at, mut payload) = (None, None, None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Id => once(&mut id, map.next_value_seed(IdInput(self.reader))?, "id")?,
                Field::Author => once(&mut author, map.next_value_seed(IdInput(self.reader))?, "author")?,
                Field::CreatedAt => {
                    once(&mut created_at, moment(&map.next_value::<String>()?)?, "created_at")?;
                }
                Field::Payload => once(&mut payload, map.next_value::<&RawValue>()?, "payload")?,
            }
        }
        let payload = payload.map(|json| payload::compact(json.get().as_bytes(), self.payload_bytes_max));
        let payload = self.reader.accept(payload.transpose())?.flatten();
        Ok(PostBody { id, author, created_at, payload })
    }
}

/// Sets a field that may occur once.
fn once<T, E: serde::de::Error>(
    field: &mut Option<T>,
    value: T,
    name: &'static str,
) -> std::result::Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

/// Parses a time. Other inputs accept milliseconds as digits; JSON has RFC 3339 only.
fn moment<E: serde::de::Error>(text: &str) -> std::result::Result<Timestamp, E> {
    let read = Timestamp::parse(text).filter(|_| text.contains('-'));
    read.ok_or_else(|| {
        E::custom("created_at must be a time in RFC 3339 from 1970 on, such as 2026-11-15T08:00:00.123Z")
    })
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;

    use super::*;

    fn read(body: &str) -> Result<PostBody> {
        parse(body.as_bytes(), IdKind::Integer, 20)
    }

    #[test]
    fn every_field_may_be_missing() {
        assert_eq!(read(" {} ").unwrap(), PostBody::default());
        let body = r#"{"payload": {"a": [1, 2]}, "created_at": "1970-01-01T01:00:00.5+01:00", "author": "7", "id": 8}"#;
        let expected = PostBody {
            id: Some(Id::Integer(8)),
            author: Some(Id::Integer(7)),
            created_at: Some(Timestamp::from_millis(500)),
            payload: Some(r#"{"a":[1,2]}"#.into()),
        };
        assert_eq!(read(body).unwrap(), expected);
        assert_eq!(read(r#"{"payload":null}"#).unwrap(), PostBody::default());
        let uuid = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
        let parsed = parse(format!(r#"{{"id":"{uuid}"}}"#).as_bytes(), IdKind::Uuid, 20).unwrap();
        assert_eq!(parsed.id.unwrap().to_string(), uuid);
    }

    #[test]
    fn refusals_say_why() {
        for (body, code, reason) in [
            ("", ErrorCode::InvalidRequest, "EOF"),
            ("[]", ErrorCode::InvalidRequest, "an object"),
            ("{}x", ErrorCode::InvalidRequest, "trailing"),
            (r#"{"body":1}"#, ErrorCode::InvalidRequest, "unknown field `body`"),
            (r#"{"id":1,"id":1}"#, ErrorCode::InvalidRequest, "duplicate field `id`"),
            (r#"{"payload":null,"payload":1}"#, ErrorCode::InvalidRequest, "duplicate field `payload`"),
            (r#"{"id":null}"#, ErrorCode::InvalidRequest, "an id"),
            (r#"{"id":1.5}"#, ErrorCode::InvalidRequest, "an id"),
            (r#"{"id":"x"}"#, ErrorCode::InvalidId, "\"x\""),
            (r#"{"author":9223372036854775808}"#, ErrorCode::InvalidId, "9223372036854775808"),
            (r#"{"created_at":5}"#, ErrorCode::InvalidRequest, "a string"),
            (r#"{"created_at":"5"}"#, ErrorCode::InvalidRequest, "RFC 3339"),
            (r#"{"created_at":"1969-12-31T23:59:59Z"}"#, ErrorCode::InvalidRequest, "RFC 3339"),
            (r#"{"payload":[1,]}"#, ErrorCode::InvalidRequest, "expected value"),
            (r#"{"payload":"\ud800"}"#, ErrorCode::InvalidRequest, "the payload"),
            (r#"{"payload":"a text that is too long"}"#, ErrorCode::PayloadTooLarge, "20 bytes"),
        ] {
            let error = read(body).expect_err(body);
            assert_eq!(error.code(), code, "{body}: {error}");
            assert!(error.to_string().contains(reason), "{body}: {error}");
        }
        assert!(parse(br#"{"id":1}"#, IdKind::Uuid, 20).is_err());
        assert!(parse(b"{\"payload\":\"\xff\"}", IdKind::Integer, 20).is_err());
    }
}
