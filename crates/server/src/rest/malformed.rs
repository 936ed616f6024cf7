//! The response to bytes that hyper could not parse as a request. Only the beginning of a request is parsed here.

use kinfolk_core::Error;

/// The maximum size of a request's line and headers together.
pub(crate) const HEADERS_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of bytes that a connection reads ahead, and that it buffers of a response until the client reads.
pub(crate) const BUFFER_BYTES_MAX: usize = 2 * HEADERS_BYTES_MAX;

/// The maximum number of headers, and the longest address: both are hyper's.
const HEADERS_MAX: usize = 100;
const URI_BYTES_MAX: usize = u16::MAX as usize - 1;

/// Why a connection is closed, if its client waits to know. `unread` is what it has sent since its last request.
pub(crate) fn refusal(error: &hyper::Error, unread: &[u8]) -> Option<Error> {
    let blank = unread.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let begun = &unread[blank..];
    if error.is_parse_too_large() {
        return Some(too_large(begun));
    }
    if error.is_parse() {
        let is_other_version = error.is_parse_version_h2() || names_other_version(begun);
        let malformed = Error::InvalidRequest { detail: format!("the request is malformed: {error}") };
        return Some(if is_other_version { Error::UnsupportedVersion } else { malformed });
    }
    if begun.is_empty() {
        return None;
    }
    if error.is_timeout() {
        return Some(Error::RequestTimeout);
    }
    let incomplete =
        || Error::InvalidRequest { detail: "the request ended before its headers did".to_owned() };
    error.is_incomplete_message().then(incomplete)
}

fn too_large(begun: &[u8]) -> Error {
    match begun.iter().position(|&byte| byte == b'\n') {
        Some(line_len) if line_len <= URI_BYTES_MAX => {
            Error::HeadersTooLarge { max: HEADERS_MAX, bytes_max: HEADERS_BYTES_MAX }
        }
        _ => Error::UriTooLong { max: URI_BYTES_MAX },
    }
}

/// Whether a request line ends with a version of HTTP that is neither 1.0 nor 1.1.
fn names_other_version(begun: &[u8]) -> bool {
    let line = begun.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let last = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    last.strip_prefix(b"HTTP/").is_some_and(|version| {
        let is_number = version.first().is_some_and(u8::is_ascii_digit)
            && version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        is_number && version != b"1.0" && version != b"1.1"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_other_than_1_0_and_1_1_are_told_from_what_is_none() {
        for line in
            ["GET / HTTP/2.0\r\n", "GET / HTTP/2", "GET / HTTP/0.9\r\nhost: x\r\n", "PRI * HTTP/2.0\r\n"]
        {
            assert!(names_other_version(line.as_bytes()), "{line:?}");
        }
        for line in
            ["", "GET /\r\n", "GET / HTTP/1.1\r\nx", "GET / HTTP/1.0", "GET / HTTP/", "GET / HTTP/x.1"]
        {
            assert!(!names_other_version(line.as_bytes()), "{line:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_too_long_and_one_with_an_end_has_too_large_headers() {
        let line = vec![b'x'; HEADERS_BYTES_MAX];
        assert!(matches!(too_large(&line), Error::UriTooLong { .. }));
        assert!(matches!(too_large(b"GET / HTTP/1.1\r\nx: 1"), Error::HeadersTooLarge { .. }));
    }
}
