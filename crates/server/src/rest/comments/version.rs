//! The version of a comment in HTTP: an entity tag in responses, `If-Match` in requests.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};

use super::super::extract::header;
use super::super::prelude::*;

/// The header with a version.
pub(crate) fn entity_tag(version: u32) -> (HeaderName, HeaderValue) {
    let tag = HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes are plain text");
    (ETAG, tag)
}

/// The version that the client has seen.
pub(crate) struct Seen(pub u32);

impl<S: Store> FromRequestParts<Shared<S>> for Seen {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        let tag = header(&parts.headers, &IF_MATCH)?.ok_or(Error::VersionRequired)?;
        Ok(Self(parse(tag)?))
    }
}

/// One version, in quotes. Others that a client may send would lose what it has not seen: `*` is any version, and a list is
/// more than one.
fn parse(text: &str) -> Result<u32> {
    let refuse = |what: &str| {
        invalid(format!("the header If-Match must name one version in quotes, such as \"1\": {what}"))
    };
    let text = text.trim();
    if text == "*" {
        return Err(refuse("* would edit any version"));
    }
    if text.starts_with("W/") {
        return Err(refuse("a weak tag does not name one"));
    }
    if text.contains(',') {
        return Err(refuse("a list names more than one"));
    }
    let digits = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let is_number = |text: &&str| {
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let digits = digits.filter(is_number).ok_or_else(|| refuse("this is no version"))?;
    // A number that does not fit is a version that no comment has.
    Ok(digits.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_in_quotes() {
        for (text, version) in [("\"1\"", 1), (" \"42\" ", 42), ("\"99999999999999\"", u32::MAX)] {
            assert_eq!(parse(text).unwrap(), version);
        }
        for (text, reason) in [
            ("*", "any version"),
            ("W/\"1\"", "weak"),
            ("\"1\", \"2\"", "a list"),
            ("\"1\",", "a list"),
            ("1", "no version"),
            ("", "no version"),
            ("\"", "no version"),
            ("\"\"", "no version"),
            ("\"0\"", "no version"),
            ("\"01\"", "no version"),
            ("\"+1\"", "no version"),
            ("\"1 \"", "no version"),
            ("\"x\"", "no version"),
            ("'1'", "no version"),
        ] {
            let refused = parse(text).unwrap_err().to_string();
            assert!(refused.contains(reason) && refused.contains("such as \"1\""), "{text}: {refused}");
        }
        assert_eq!(entity_tag(7).1, "\"7\"");
    }
}
