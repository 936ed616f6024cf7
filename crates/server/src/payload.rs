//! Payloads of posts: any JSON, stored as the application wrote it, but without the blanks between its parts. Its content
//! has no meaning here.

use std::sync::Arc;

use kinfolk_core::{Error, Result};
use serde_json::Value;
use serde_json::value::RawValue;

/// How deep lists and objects may be within each other. Parsers give up somewhere above 100, and a payload is itself
/// within the lists and objects of a response, which must not become unreadable for what one author has put into it.
const DEPTH_MAX: usize = 64;

/// A payload as it is stored. `null` means the same as none.
///
/// # Errors
/// If it is no JSON, none that can be relied on to be read again, or too long.
pub fn compact(text: &[u8], bytes_max: usize) -> Result<Option<Arc<str>>> {
    let invalid = |error| Error::InvalidRequest { detail: format!("the payload is not valid JSON: {error}") };
    // As it is, first: `1 2` is none, and would be if the blank were taken out.
    let json: &RawValue = serde_json::from_slice(text).map_err(invalid)?;
    let compacted = without_blanks(json.get(), bytes_max)?;
    // Then as readers see it: halves of characters and numbers beyond all bounds are JSON, but nobody can take them.
    serde_json::from_str::<Value>(&compacted).map_err(invalid)?;
    Ok((compacted != "null").then(|| compacted.into()))
}

/// Takes out the blanks that are not in a string. Numbers and strings stay as they are written.
fn without_blanks(json: &str, bytes_max: usize) -> Result<String> {
    let mut kept = String::with_capacity(json.len().min(bytes_max));
    let (mut in_string, mut escaped, mut depth) = (false, false, 0_usize);
    for character in json.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            _ if in_string => {}
            ' ' | '\t' | '\n' | '\r' => continue,
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            let detail = format!("the payload of a post is nested more than {DEPTH_MAX} times");
            return Err(Error::InvalidRequest { detail });
        }
        kept.push(character);
        if kept.len() > bytes_max {
            return Err(Error::PayloadTooLarge { max: bytes_max });
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 4_096;

    fn stored(text: &str) -> Option<String> {
        compact(text.as_bytes(), MAX).unwrap().map(|payload| payload.to_string())
    }

    fn refusal(text: &[u8]) -> ErrorCode {
        compact(text, MAX).unwrap_err().code()
    }

    #[test]
    fn blanks_go_and_the_rest_stays() {
        for (given, expected) in [
            (" { \"b\" : [ 1 ,\n\t2 ] ,\r\n \"a\" : \" x \\\" y \" } ", r#"{"b":[1,2],"a":" x \" y "}"#),
            ("12345678901234567890123456789", "12345678901234567890123456789"),
            ("1.10e+2", "1.10e+2"),
            (r#" "\\" "#, r#""\\""#),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
            ("\"\u{2028} é\"", "\"\u{2028} é\""),
            ("false", "false"),
            ("{}", "{}"),
        ] {
            assert_eq!(stored(given).as_deref(), Some(expected));
        }
        assert_eq!(stored(" null "), None);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in
            ["", " ", "1 2", "t rue", "nul", "{", "[1,]", "{a:1}", "'a'", "\"\n\"", "NaN", "1e999", "{}x"]
        {
            assert_eq!(refusal(text.as_bytes()), ErrorCode::InvalidRequest, "{text:?}");
        }
        assert_eq!(refusal(br#""\ud800""#), ErrorCode::InvalidRequest);
        assert_eq!(refusal(b"\"\xff\""), ErrorCode::InvalidRequest);
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_refused() {
        let string = |letters: usize| format!("\"{}\"", "x".repeat(letters));
        assert_eq!(stored(&string(MAX - 2)).map(|text| text.len()), Some(MAX));
        assert_eq!(refusal(string(MAX - 1).as_bytes()), ErrorCode::PayloadTooLarge);
        // Blanks do not count.
        assert_eq!(stored(&format!("{}1{}", " ".repeat(MAX), "\n".repeat(MAX))).as_deref(), Some("1"));
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(stored(&nested(DEPTH_MAX)).is_some());
        assert_eq!(refusal(nested(DEPTH_MAX + 1).as_bytes()), ErrorCode::InvalidRequest);
        assert_eq!(refusal(nested(500_000).as_bytes()), ErrorCode::InvalidRequest);
        assert!(stored("[\"[[[\",[],[]]").is_some());
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ \\PC]{0,6}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_meaning_stays(value in json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let expected = (!value.is_null()).then(|| value.to_string());
            prop_assert_eq!(stored(&pretty), expected);
        }

        #[test]
        fn anything_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}\",:0-9a\\\\ ]{0,24}") {
            for given in [bytes.as_slice(), text.as_bytes()] {
                if let Ok(Some(payload)) = compact(given, MAX) {
                    let again = compact(payload.as_bytes(), MAX).unwrap();
                    prop_assert_eq!(again, Some(payload));
                }
            }
        }
    }
}
