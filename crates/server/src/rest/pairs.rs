//! The body of a bulk check, read directly into edges: no string is copied and no JSON tree is built.

use std::cell::Cell;
use std::fmt;

use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Result};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::json_body::{self, IdInput, Reader};

/// Capacity for this many pairs is reserved before the first is read.
const CAPACITY_FIRST: usize = 128;

/// Reads `{"pairs":[[follower, followee], …]}`.
///
/// # Errors
/// If it is anything else, or an id is not of that kind.
pub fn parse(body: &[u8], kind: IdKind) -> Result<Vec<Edge>> {
    let refused = Cell::new(None);
    json_body::read(body, Body(Reader { kind, refused: &refused }), &refused)
}

struct Body<'a>(Reader<'a>);

impl<'de> Visitor<'de> for Body<'_> {
    type Value = Vec<Edge>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with the field pairs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut edges = None;
        while let Some(Field::Pairs) = map.next_key()? {
            if edges.is_some() {
                return Err(A::Error::duplicate_field("pairs"));
            }
            edges = Some(map.next_value_seed(Pairs(self.0))?);
        }
        edges.ok_or_else(|| A::Error::missing_field("pairs"))
    }
}

/// The only field.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Pairs,
}

struct Pairs<'a>(Reader<'a>);

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = Vec<Edge>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Vec<Edge>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = Vec<Edge>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of pairs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Vec<Edge>, A::Error> {
        let mut edges = Vec::with_capacity(CAPACITY_FIRST);
        while let Some(edge) = list.next_element_seed(Pair(self.0))? {
            edges.push(edge);
        }
        Ok(edges)
    }
}

struct Pair<'a>(Reader<'a>);

impl<'de> DeserializeSeed<'de> for Pair<'_> {
    type Value = Edge;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Edge, D::Error> {
        deserializer.deserialize_tuple(2, self)
    }
}

impl<'de> Visitor<'de> for Pair<'_> {
    type Value = Edge;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a pair of ids: [follower, followee]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> std::result::Result<Edge, A::Error> {
        let follower =
            pair.next_element_seed(IdInput(self.0))?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let followee =
            pair.next_element_seed(IdInput(self.0))?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        // A third element makes the parser itself complain: it expects the list to end here.
        Ok(Edge { follower, followee })
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{ErrorCode, Id};

    use super::*;

    fn refusal(body: &str, kind: IdKind) -> (ErrorCode, String) {
        let error = parse(body.as_bytes(), kind).expect_err(body);
        (error.code(), error.to_string())
    }

    #[test]
    fn strings_and_integers() {
        let body = r#" {"pairs": [["1", 2], [9223372036854775807, "\u0033"]] } "#;
        let edge =
            |follower, followee| Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
        assert_eq!(parse(body.as_bytes(), IdKind::Integer).unwrap(), [edge(1, 2), edge(i64::MAX as u64, 3)]);
        assert_eq!(parse(br#"{"pairs":[]}"#, IdKind::Integer).unwrap(), []);
        let uuid = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
        let body = format!(r#"{{"pairs":[["{uuid}","{uuid}"]]}}"#);
        assert_eq!(parse(body.as_bytes(), IdKind::Uuid).unwrap()[0].follower.to_string(), uuid);
    }

    #[test]
    fn refused_ids_say_why() {
        for body in
            [r#"{"pairs":[["x",1]]}"#, r#"{"pairs":[[1,9223372036854775808]]}"#, r#"{"pairs":[["",1]]}"#]
        {
            assert_eq!(refusal(body, IdKind::Integer).0, ErrorCode::InvalidId, "{body}");
        }
        assert_eq!(refusal(r#"{"pairs":[[1,2]]}"#, IdKind::Uuid).0, ErrorCode::InvalidId);
    }

    #[test]
    fn anything_else_is_an_invalid_request() {
        for (body, reason) in [
            ("", "EOF"),
            ("[]", "an object"),
            ("{}", "missing field `pairs`"),
            ("nonsense", "expected"),
            ("{\"pairs\":[]}x", "trailing"),
            (r#"{"pairs":[],"pairs":[]}"#, "duplicate field `pairs`"),
            (r#"{"pairs":[],"kind":1}"#, "unknown field `kind`"),
            (r#"{"pairs":null}"#, "a list of pairs"),
            (r#"{"pairs":[[1]]}"#, "invalid length 1"),
            (r#"{"pairs":[[1,2,3]]}"#, "trailing"),
            (r#"{"pairs":[[1,2.5]]}"#, "an integer"),
            (r#"{"pairs":[[1,-2]]}"#, "an integer"),
            (r#"{"pairs":[[1,1e3]]}"#, "an integer"),
            (r#"{"pairs":[[1,18446744073709551616]]}"#, "an integer"),
            (r#"{"pairs":[[1,true]]}"#, "an integer"),
            (r#"{"pairs":[["1","2"]"#, "EOF"),
        ] {
            let (code, detail) = refusal(body, IdKind::Integer);
            assert_eq!(code, ErrorCode::InvalidRequest, "{body}");
            assert!(detail.contains(reason), "{body}: {detail}");
        }
        assert!(parse(b"{\"pairs\":[[\"\xff\",1]]}", IdKind::Integer).is_err());
    }
}
