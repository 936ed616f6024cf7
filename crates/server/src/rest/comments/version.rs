//! The versions of comments in `If-Match`: an edit names the version that it is based on. Entity tags have a file of their own.

use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;

use super::super::entity_tag::{ListedTags, opaque};
use super::super::prelude::*;

/// The versions that the client allows to be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Whichever is current: `*`.
    Any,
    /// One of these; none of them if the tags are not those of versions.
    Versions(Vec<u32>),
}

impl Seen {
    /// The version to try first. No comment has version 0.
    pub(crate) fn first(&self) -> u32 {
        match self {
            Self::Any => 1,
            Self::Versions(versions) => versions.first().copied().unwrap_or(0),
        }
    }

    /// Whether the client allows a version to be edited.
    pub(crate) fn has(&self, version: u32) -> bool {
        match self {
            Self::Any => true,
            Self::Versions(versions) => versions.contains(&version),
        }
    }
}

impl<S: Store> FromRequestParts<Shared<S>> for Seen {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        let unreadable = |_| {
            let detail = "the header If-Match must have a version in quotes, such as \"1\", or the ETag of the comment";
            Failure(invalid(detail.to_owned()))
        };
        match ListedTags::of(&parts.headers, &IF_MATCH).ok_or(Error::VersionRequired)?.map_err(unreadable)? {
            ListedTags::Any => Ok(Self::Any),
            ListedTags::Tags(tags) => {
                Ok(Self::Versions(tags.iter().filter_map(|tag| version(opaque(tag))).collect()))
            }
        }
    }
}

/// The version that a tag begins with. What follows it says which representation of that version the client has seen, and how it
/// was compressed: an edit replaces the body, which depends on the version alone.
fn version(tag: &str) -> Option<u32> {
    let end = tag.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(tag.len());
    let (digits, rest) = tag.split_at(end);
    let is_version = !digits.starts_with('0') && (rest.is_empty() || rest.starts_with(['.', '-', ';', ':']));
    digits.parse().ok().filter(|_| is_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_begins_with_its_version() {
        for tag in ["42", "42.9f86d081884c7d65", "42-gzip", "42;gzip", "42.9f86d081884c7d65--gzip"] {
            assert_eq!(version(tag), Some(42), "{tag}");
        }
        for tag in ["", "0", "042", "+42", " 42", "42 ", "42x", "x", ".42", "99999999999999"] {
            assert_eq!(version(tag), None, "{tag}");
        }
    }

    #[test]
    fn what_names_no_version_allows_none() {
        let none = Seen::Versions(Vec::new());
        assert_eq!((none.first(), none.has(0), none.has(1)), (0, false, false));
        let some = Seen::Versions(vec![2, 5]);
        assert_eq!((some.first(), some.has(5), some.has(1)), (2, true, false));
        assert!(Seen::Any.has(Seen::Any.first()) && Seen::Any.has(7));
    }
}
