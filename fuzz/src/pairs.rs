//! The body of a bulk check: read as any JSON parser would read it, or refused with a reason.

use kinfolk_core::graph::Edge;
use kinfolk_core::{ErrorCode, Id, IdKind};
use kinfolk_server::rest::pairs::parse;
use serde_json::{Value, json};

/// Reads the input as a body for each kind of ids.
pub fn check_body(input: &[u8]) {
    for kind in [IdKind::Integer, IdKind::Uuid] {
        match parse(input, kind) {
            Ok(edges) => {
                let value: Value = serde_json::from_slice(input).unwrap();
                assert_eq!(read(&value, kind), Some(edges.clone()));
                let again: Vec<[String; 2]> =
                    edges.iter().map(|edge| [edge.follower.to_string(), edge.followee.to_string()]).collect();
                let again = json!({ "pairs": again }).to_string();
                assert_eq!(parse(again.as_bytes(), kind).unwrap(), edges);
            }
            Err(error) => {
                assert!(matches!(error.code(), ErrorCode::InvalidRequest | ErrorCode::InvalidId), "{error}");
                // What another parser takes may still be refused for a name that is there twice.
                let is_twice =
                    input.windows(5).filter(|part| part == b"pairs").count() != 1 || input.contains(&b'\\');
                let value: Option<Value> = serde_json::from_slice(input).ok();
                let taken = value.and_then(|value| read(&value, kind));
                assert!(is_twice || taken.is_none(), "refused: {error}");
            }
        }
    }
}

/// The plain way to read it.
fn read(value: &Value, kind: IdKind) -> Option<Vec<Edge>> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get("pairs")?.as_array()?.iter().map(|pair| pair_of(pair, kind)).collect()
}

fn pair_of(pair: &Value, kind: IdKind) -> Option<Edge> {
    let [follower, followee] = pair.as_array()?.as_slice() else { return None };
    Some(Edge { follower: id(follower, kind)?, followee: id(followee, kind)? })
}

fn id(value: &Value, kind: IdKind) -> Option<Id> {
    match value {
        Value::String(text) => kind.parse(text).ok(),
        Value::Number(number) if kind == IdKind::Integer => Id::integer(number.as_u64()?).ok(),
        _ => None,
    }
}
