//! The cookies of the console: reading and writing them. What is in them is not interpreted here, apart from the id of a user.

use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::header::COOKIE;
use kinfolk_core::{Id, IdKind};

/// The session of somebody who has signed in.
pub(crate) const SESSION: &str = "kinfolk_session";
/// The user that the visitor acts as.
pub(crate) const ACTOR: &str = "kinfolk_actor";
/// The consistency token of the visitor's last write.
pub(crate) const TOKEN: &str = "kinfolk_token";

/// The value of a cookie.
pub(crate) fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .find_map(|cookie| {
            let (known, value) = cookie.trim().split_once('=')?;
            (known == name && !value.is_empty()).then_some(value)
        })
}

/// The user that the visitor acts as. One of another kind of ids was chosen in another deployment on this machine.
pub(crate) fn actor(headers: &HeaderMap, kind: IdKind) -> Option<Id> {
    kind.parse(find(headers, ACTOR)?).ok()
}

/// A cookie for the pages of the console, out of reach of their scripts and of other sites.
pub(crate) struct NewCookie<'a> {
    pub(crate) name: &'static str,
    /// Plain text without separators.
    pub(crate) value: &'a str,
    /// How long it is kept; 0 removes it, and without an age it ends with the browser.
    pub(crate) seconds: Option<u64>,
    /// Whether it is sent over encrypted connections only.
    pub(crate) is_secure: bool,
}

impl NewCookie<'_> {
    /// The header that sets it.
    pub(crate) fn header(&self) -> HeaderValue {
        let Self { name, value, seconds, is_secure } = self;
        let age = seconds.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let secure = if *is_secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/console; HttpOnly; SameSite=Strict{age}{secure}");
        HeaderValue::try_from(text).expect("ids and sealed text are plain text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (COOKIE, HeaderValue::from_str(line).unwrap())).collect()
    }

    #[test]
    fn cookies_are_found_among_others() {
        let headers = headers(&["a=1; kinfolk_actor=7;kinfolk_session=", "kinfolk_token=a=b"]);
        assert_eq!(find(&headers, ACTOR), Some("7"));
        assert_eq!(find(&headers, TOKEN), Some("a=b"));
        assert_eq!(find(&headers, SESSION), None, "an empty cookie is none");
        assert_eq!(actor(&headers, IdKind::Integer), Some(Id::Integer(7)));
        assert_eq!(actor(&headers, IdKind::Uuid), None);
    }

    #[test]
    fn cookies_are_for_the_console_alone() {
        let cookie = NewCookie { name: SESSION, value: "x", seconds: Some(60), is_secure: true };
        assert_eq!(
            cookie.header(),
            "kinfolk_session=x; Path=/console; HttpOnly; SameSite=Strict; Max-Age=60; Secure"
        );
        let cookie = NewCookie { seconds: None, is_secure: false, ..cookie };
        assert_eq!(cookie.header(), "kinfolk_session=x; Path=/console; HttpOnly; SameSite=Strict");
    }
}
