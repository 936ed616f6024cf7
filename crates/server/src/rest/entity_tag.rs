//! Entity tags (RFC 9110): each names one representation of a resource, byte for byte. What versions mean is up to the resource.
//!
//! A tag is a hash of the representation, so it changes whenever anything in it does. The tag of something that has versions begins
//! with its version: `"3.9f86d081884c7d65"`. A response that is compressed on its way out has the same tag, but weak (`W/"…"`): its
//! bytes are others, its meaning is the same.

use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::problem::{Failure, RestResult};
use super::{Shared, Store, json};

/// How many bytes of the hash are in a tag.
const HASH_BYTES: usize = 8;

/// What proxies append to a tag when they compress a response, without the separator before it.
const CODINGS: [&str; 4] = ["gzip", "br", "zstd", "deflate"];

/// Caches ask each time: what a reader may see depends on the reader and changes with every write.
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// What the document says of `If-None-Match`, and of the response where it holds.
pub(crate) const IF_NONE_MATCH_DESCRIPTION: &str =
    "The `ETag` that the client has, or a list of them: 304 if the response would have it";
pub(crate) const NOT_MODIFIED: &str = "The client has the current representation already";

/// The name of a representation, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag(String);

impl EntityTag {
    /// The tag of a representation.
    pub(crate) fn of(representation: &[u8]) -> Self {
        let hash = blake3::hash(representation);
        Self(data_encoding::HEXLOWER.encode(&hash.as_bytes()[..HASH_BYTES]))
    }

    /// The tag of a representation of something that has versions.
    pub(crate) fn of_version(version: u32, representation: &[u8]) -> Self {
        Self(format!("{version}.{}", Self::of(representation).0))
    }

    /// The header that carries it.
    pub(crate) fn header(&self) -> (HeaderName, HeaderValue) {
        let tag = HeaderValue::from_str(&self.to_string()).expect("digits and quotes are plain text");
        (ETAG, tag)
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0)
    }
}

/// The entity tags that a header of a request lists. Several headers of one name are one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListedTags {
    /// `*`: any representation.
    Any,
    /// Each as the client sent it.
    Tags(Vec<String>),
}

impl ListedTags {
    /// Reads a header; `None` if the request does not have it.
    ///
    /// # Errors
    /// If it is not a list of tags in quotes.
    pub(crate) fn of(headers: &HeaderMap, name: &HeaderName) -> Option<Result<Self, NotTags>> {
        let values = headers.get_all(name).iter().map(HeaderValue::to_str);
        let values: Result<Vec<&str>, _> = values.collect();
        match values {
            Ok(values) if values.is_empty() => None,
            Ok(values) => Some(Self::parse(&values.join(","))),
            Err(_) => Some(Err(NotTags)),
        }
    }

    fn parse(list: &str) -> Result<Self, NotTags> {
        if list.trim() == "*" {
            return Ok(Self::Any);
        }
        let (mut tags, mut rest) = (Vec::new(), list);
        loop {
            // Lists may have empty elements.
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                break;
            }
            let quoted = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"').ok_or(NotTags)?;
            let (_, after) = quoted.split_once('"').ok_or(NotTags)?;
            if !after.trim_start().is_empty() && !after.trim_start().starts_with(',') {
                return Err(NotTags);
            }
            tags.push(rest[..rest.len() - after.len()].to_owned());
            rest = after;
        }
        if tags.is_empty() { Err(NotTags) } else { Ok(Self::Tags(tags)) }
    }
}

/// A header that is not a list of entity tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotTags;

/// A tag as the client sent it, without quotes, and without the mark of a weak one.
pub(crate) fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"')
}

/// What a tag was before a proxy that compressed the response changed it: `"3-gzip"` and `"3;gzip"` were `"3"`.
fn without_coding(opaque: &str) -> &str {
    let end = CODINGS.iter().find_map(|coding| opaque.strip_suffix(coding));
    end.filter(|end| end.ends_with(['-', ';', ':']))
        .map_or(opaque, |end| end.trim_end_matches(['-', ';', ':']))
}

/// Of a response that may be compressed.
const BY_CODING: HeaderValue = HeaderValue::from_static("accept-encoding");

/// The representations that the client has already, by its header `If-None-Match`. A header that can't be read names none.
pub(crate) struct Cached(Option<ListedTags>);

impl<S: Store> FromRequestParts<Shared<S>> for Cached {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        Ok(Self(ListedTags::of(&parts.headers, &IF_NONE_MATCH).and_then(Result::ok)))
    }
}

impl Cached {
    /// The response to a read: the JSON, or 304 if the client has it.
    pub(crate) fn respond(&self, tag: &EntityTag, representation: impl Into<Bytes>) -> Response {
        self.respond_with(tag, || json::written(representation.into()))
    }

    /// The response to a read: the representation, or 304 if the client has it.
    pub(crate) fn respond_with(
        &self,
        tag: &EntityTag,
        representation: impl FnOnce() -> Response,
    ) -> Response {
        let mut response = match self.find(tag) {
            // As the client has it: a cache finds what it stored by the same tag.
            Some(known) => (StatusCode::NOT_MODIFIED, [(ETAG, known), (VARY, BY_CODING)]).into_response(),
            None => ([tag.header()], representation()).into_response(),
        };
        response.headers_mut().insert(CACHE_CONTROL, REVALIDATED);
        response
    }

    /// The tag by which the client knows a representation, if it does. Weak tags are as good as strong ones here.
    fn find(&self, tag: &EntityTag) -> Option<HeaderValue> {
        match self.0.as_ref()? {
            ListedTags::Any => Some(tag.header().1),
            ListedTags::Tags(tags) => {
                let known = tags.iter().find(|known| without_coding(opaque(known)) == tag.0)?;
                HeaderValue::from_str(known).ok()
            }
        }
    }
}

/// Weakens the tag of a response that was compressed.
pub(crate) async fn weaken_compressed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    if headers.contains_key(CONTENT_ENCODING)
        && let Some(strong) = headers.get(ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""))
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", strong.as_bytes()].concat())
    {
        headers.insert(ETAG, weak);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(list: &str) -> Cached {
        Cached(ListedTags::parse(list).ok())
    }

    #[test]
    fn a_tag_names_a_representation() {
        let tag = EntityTag::of_version(3, b"{}");
        assert_eq!(tag.to_string(), "\"3.6e46dd10defc9b56\"");
        assert_ne!(tag, EntityTag::of_version(3, b"[]"));
        assert_ne!(tag, EntityTag::of_version(4, b"{}"));
    }

    #[test]
    fn lists_have_tags_in_quotes() {
        let tags = |list: &str| match ListedTags::parse(list) {
            Ok(ListedTags::Tags(tags)) => Some(tags),
            _ => None,
        };
        assert_eq!(ListedTags::parse(" * "), Ok(ListedTags::Any));
        assert_eq!(tags("\"3\"").unwrap(), ["\"3\""]);
        assert_eq!(tags(" W/\"3\" , \"a,b\",, \"\"\t").unwrap(), ["W/\"3\"", "\"a,b\"", "\"\""]);
        for list in ["", " ,", "3", "\"3", "3\"", "'3'", "\"3\" \"4\"", "\"3\"x", "w/\"3\"", "*, \"3\""] {
            assert_eq!(ListedTags::parse(list), Err(NotTags), "{list}");
        }
    }

    #[test]
    fn a_client_knows_a_representation_by_what_a_proxy_made_of_its_tag() {
        let tag = EntityTag("3.ab".to_owned());
        for known in
            ["\"3.ab\"", "W/\"3.ab\"", "\"3.ab-gzip\"", "\"3.ab;gzip\"", "\"3.ab--gzip\"", "W/\"3.ab:br\""]
        {
            assert_eq!(cached(&format!("\"x\", {known}")).find(&tag).unwrap(), known);
        }
        assert_eq!(cached("*").find(&tag).unwrap(), "\"3.ab\"");
        for other in ["\"3\"", "\"3.abc\"", "\"3.abgzip\"", "\"3.ab-snappy\"", "3.ab", ""] {
            assert!(cached(other).find(&tag).is_none(), "{other}");
        }
    }
}
