//! The origin of a web page, as browsers send it in `Origin` (RFC 6454). The guard decides which origins
//! may call.

use std::str::FromStr;

use axum::http::uri::Authority;
use kinfolk_core::{Error, Result};

/// A scheme, a host and, unless it is the usual one, a port: `https://example.org`. Written as browsers write it, so
/// that comparing bytes is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    text: String,
    host: String,
}

impl Origin {
    /// As a browser sends it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host alone.
    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

impl FromStr for Origin {
    type Err = Error;

    /// Everything else is refused, `*` too: each page that may call is named.
    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| Error::InvalidInput {
            detail: format!(
                "{text:?} is not an origin: write a scheme, a host and, if it is not the usual one, a port, such as \
                 https://example.org or http://localhost:3000, without a path or a slash at the end; there is no \
                 wildcard"
            ),
        })
    }
}

fn parse(text: &str) -> Option<Origin> {
    let text = text.to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let parsed: Authority = authority.parse().ok()?;
    let host = parsed.host();
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_address = |host: &str| {
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inside.is_some_and(|inside| inside.parse::<std::net::Ipv6Addr>().is_ok())
    };
    if host.is_empty() || !(host.bytes().all(is_host) || is_address(host)) {
        return None;
    }
    let port = match authority.strip_prefix(host)? {
        "" => None,
        port => {
            let digits =
                port.strip_prefix(':').filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?;
            Some(digits.parse::<u16>().ok()?)
        }
    };
    let usual = matches!((scheme, port), ("https", Some(443)) | ("http", Some(80)));
    let port = port.filter(|_| !usual).map_or_else(String::new, |port| format!(":{port}"));
    Some(Origin { text: format!("{scheme}://{host}{port}"), host: host.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_write_them() {
        for (text, expected) in [
            ("https://example.org", "https://example.org"),
            ("HTTPS://Example.ORG:443", "https://example.org"),
            ("http://example.org:443", "http://example.org:443"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://127.0.0.1:80", "http://127.0.0.1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("capacitor://localhost", "capacitor://localhost"),
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!(origin.as_str(), expected);
            assert_eq!(origin.as_str().parse::<Origin>().unwrap(), origin);
        }
        assert_eq!("http://[::1]:8080".parse::<Origin>().unwrap().host(), "[::1]");
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "*",
            "null",
            "example.org",
            "localhost:3000",
            "//example.org",
            "://example.org",
            "https://",
            "https://*",
            "https://*.example.org",
            "https://example.org/",
            "https://example.org/path",
            "https://example.org?x",
            "https://example.org#x",
            "https://me@example.org",
            "https://example.org:",
            "https://example.org:port",
            "https://example.org:65536",
            "https://example.org:+1",
            "https://exam ple.org",
            "https://ex\u{e4}mple.org",
            "https://[1]",
            "https://[::1",
            "1https://example.org",
            "file:///",
        ] {
            let error = text.parse::<Origin>().unwrap_err().to_string();
            assert!(error.contains("https://example.org or"), "{text}: {error}");
        }
    }
}
