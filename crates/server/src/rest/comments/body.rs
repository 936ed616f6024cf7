//! JSON bodies of new comments, edits and removals: objects of a few strings. The rules in `core` decide which strings are valid.

use std::borrow::Cow;
use std::fmt;

use kinfolk_core::Result;
use serde::de::{Error as _, MapAccess, Visitor};

use super::super::json_body;

/// Reads `{"body", "reply_to"?}`: the body, and the id of the comment that it replies to, not parsed yet.
pub fn new_comment(body: &[u8]) -> Result<(String, Option<String>)> {
    let [text, reply_to] = texts(body, &["body", "reply_to"])?;
    Ok((text.unwrap_or_default(), reply_to))
}

/// Reads an object with one string of that name.
pub fn text(body: &[u8], name: &'static [&'static str; 1]) -> Result<String> {
    let [text] = texts(body, name)?;
    Ok(text.unwrap_or_default())
}

/// Reads an object of strings with these names, the first of which is required.
fn texts<const N: usize>(body: &[u8], names: &'static [&'static str; N]) -> Result<[Option<String>; N]> {
    json_body::read(body, Texts { names }, &std::cell::Cell::new(None))
}

struct Texts<const N: usize> {
    names: &'static [&'static str; N],
}

impl<'de, const N: usize> Visitor<'de> for Texts<N> {
    type Value = [Option<String>; N];

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object with {}", self.names.join(" and "))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut texts = [const { None }; N];
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let known = self.names.iter().zip(&mut texts).find(|(known, _)| **known == name);
            let Some((known, text)) = known else { return Err(A::Error::unknown_field(&name, self.names)) };
            if text.replace(map.next_value::<String>()?).is_some() {
                return Err(A::Error::duplicate_field(known));
            }
        }
        match (self.names.first(), texts.first()) {
            (Some(first), Some(None)) => Err(A::Error::missing_field(first)),
            _ => Ok(texts),
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;

    use super::*;

    #[test]
    fn texts_come_as_they_are() {
        let read = |body: &str| new_comment(body.as_bytes()).unwrap();
        assert_eq!(read(r#" {"body":" a\n\u0000\ud83d\ude00"} "#), (" a\n\0😀".to_owned(), None));
        assert_eq!(read(r#"{"reply_to":"7","body":""}"#), (String::new(), Some("7".to_owned())));
        assert_eq!(text(br#"{"re\u0061son":"x"}"#, &["reason"]).unwrap(), "x");
    }

    #[test]
    fn refusals_say_why() {
        for (body, reason) in [
            ("", "EOF"),
            ("[]", "an object with body and reply_to"),
            (r#"["a"]"#, "an object"),
            (r#""a""#, "an object"),
            ("null", "an object"),
            ("{}", "missing field `body`"),
            (r#"{"reply_to":"7"}"#, "missing field `body`"),
            (r#"{"body":"a","body":"a"}"#, "duplicate field `body`"),
            (r#"{"body":"a","author":"1"}"#, "unknown field `author`"),
            (r#"{"body":1}"#, "a string"),
            (r#"{"body":null}"#, "a string"),
            (r#"{"body":"a","reply_to":null}"#, "a string"),
            (r#"{"body":"a"}x"#, "trailing"),
            (r#"{"body":"\ud800"}"#, "hex escape"),
            (r#"{"body":"\udc00x"}"#, "lone"),
            ("{\"body\":\"\u{1}\"}", "control character"),
        ] {
            let refused = new_comment(body.as_bytes()).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidRequest, "{body}");
            assert!(refused.to_string().contains(reason), "{body}: {refused}");
        }
        assert!(new_comment(b"{\"body\":\"\xff\"}").is_err());
    }
}
