//! Refusals and failures as pages. Programs get problem documents, people a page that says what happened and what to do.

use axum::http::header::{ACCEPT, REFRESH, RETRY_AFTER};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use kinfolk_core::{Error, ErrorCode};
use maud::{Markup, html};

use super::page::{self, SoloPage};
use super::{ConsoleSettings, visit};
use crate::internal_error::{self, Shown};
use crate::rest::problem::{self, Failure};
use crate::rest::request_id::RequestId;

/// A request for a page, which a browser shows.
pub(crate) struct Asked {
    method: Method,
    uri: Uri,
}

impl Asked {
    /// Of a request; none if it is for something else, or made by a program.
    pub(crate) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let accepts_pages = || {
            headers.get(ACCEPT).and_then(|accept| accept.to_str().ok())?.contains("text/html").then_some(())
        };
        let is_page = super::owns(uri.path()) && accepts_pages().is_some();
        is_page.then(|| Self { method: method.clone(), uri: uri.clone() })
    }
}

/// Turns a failed response into a page. Other responses stay as they are.
pub(crate) fn finish(
    asked: &Asked,
    settings: &ConsoleSettings,
    response: &mut Response,
    request_id: &RequestId,
) {
    let Some(Failure(error)) = response.extensions_mut().remove() else { return };
    internal_error::log(&error, request_id);
    let status = response.status();
    let mut document = match error.code() {
        ErrorCode::Unauthenticated if asked.method.is_safe() => sign_in(asked),
        code => {
            let page = SoloPage { title: title(status), settings };
            // A form would be sent again as something else.
            let is_loading = matches!(error, Error::Loading) && asked.method.is_safe();
            let content = if is_loading { loading() } else { content(&error, status, code, request_id) };
            let mut response = page::respond(status, page.render(&content));
            if is_loading {
                response.headers_mut().insert(REFRESH, HeaderValue::from_static("2"));
            }
            response
        }
    };
    if let Some(after) = problem::retry_after(&error) {
        document.headers_mut().insert(RETRY_AFTER, problem::seconds(after));
    }
    *response = document;
}

/// Leads to the sign-in, and from there back to a page that was read.
fn sign_in(Asked { uri, .. }: &Asked) -> Response {
    let next = uri.path_and_query().map(PathAndQuery::as_str);
    let next = next.filter(|next| *next != super::ROOT);
    let next: String = next.map_or_else(String::new, |next| {
        format!("?next={}", form_urlencoded::byte_serialize(next.as_bytes()).collect::<String>())
    });
    visit::redirect(&format!("/console/sign-in{next}"))
}

fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "Signed out",
        403 => "Not allowed",
        404 | 410 => "Not found",
        409 | 412 => "Conflict",
        423 => "Locked",
        429 => "Too many requests",
        501 => "Not available",
        503 => "Not available for now",
        400..=499 => "Not possible",
        _ => "Something failed",
    }
}

fn loading() -> Markup {
    html! {
        section.panel {
            div.panel-body {
                h1 { "The store is loading" }
                p.muted role="status" { "This page refreshes itself, and continues when the store is ready." }
                progress aria-label="Loading" {}
            }
        }
    }
}

fn content(error: &Error, status: StatusCode, code: ErrorCode, request_id: &RequestId) -> Markup {
    let detail = match error {
        // Pages have no headers to name an actor in.
        Error::ActorRequired => "this is about the user that you act as: choose one first".to_owned(),
        Error::VersionConflict { .. } => {
            "somebody has edited this comment since you opened the page: load it again, and edit what is there now".to_owned()
        }
        error => Shown(error).to_string(),
    };
    html! {
        section.panel {
            div.panel-body {
                p.status-code { (status.as_u16()) " " (code.name()) }
                h1 { (title(status)) }
                p { (sentence(&detail)) }
                @match code {
                    ErrorCode::Unauthenticated => {
                        p.hint { "Nothing was written. Sign in, then go back: your browser may still have what you wrote." }
                        div.button-row { a.button.button-primary href="/console/sign-in" { "Sign in" } }
                    }
                    ErrorCode::Loading => p.hint { "Nothing was written. Go back and send it again in a moment." },
                    _ => {
                        p.hint { "Go back to change what you sent, or start again from the overview." }
                        div.button-row { a.button.button-primary href="/console" { "Overview" } }
                    }
                }
                @if code == ErrorCode::Forbidden {
                    form method="post" action="/console/sign-out" { button.button { "Sign in with another key" } }
                }
            }
            p.panel-foot { "Request " span.id { (request_id) } }
        }
    }
}

/// A message as a sentence.
pub(super) fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_sentences() {
        assert_eq!(sentence("the comments are locked"), "The comments are locked.");
        assert_eq!(sentence("Done."), "Done.");
        assert_eq!(sentence("\u{e9}t\u{e9}"), "\u{c9}t\u{e9}.");
    }

    #[test]
    fn only_browsers_that_read_pages_get_them() {
        let of = |path: &str, accept: &'static str| {
            let headers = [(ACCEPT, accept.parse().unwrap())].into_iter().collect();
            Asked::of(&Method::GET, &path.parse().unwrap(), &headers).is_some()
        };
        assert!(of("/console/users/1", "text/html,application/xhtml+xml"));
        assert!(!of("/console/live.json", "*/*"));
        assert!(!of("/v1/users/1/followers", "text/html"));
    }
}
