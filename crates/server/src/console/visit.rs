//! A request of a visitor, as the handlers of pages see it: the admitted call, the user that the visitor acts as, and the ways to
//! respond. What a page looks like is in `page`.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use axum::http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kinfolk_core::comments::Viewer as CommentViewer;
use kinfolk_core::{Id, Position};
use maud::Markup;

use super::cookies::{self, NewCookie};
use super::form::Form;
use super::page::{self, Frame, Nav};
use super::{ROOT, owns};
use crate::access::{Identity, Scope};
use crate::rest::extract::Call;
use crate::rest::problem::{Failure, RestResult};
use crate::rest::query::Query;
use crate::rest::{Shared, Store};
use crate::service::Capability;

/// The parameter of a page that says what was just done.
const DONE: &str = "done";

named! {
    /// What a form has done, as the next page reports it.
    pub(crate) Done {
        ActingAs = "acting_as",
        ActingStopped = "acting_stopped",
        Followed = "followed",
        Unfollowed = "unfollowed",
        FollowerRemoved = "follower_removed",
        Dismissed = "dismissed",
        Posted = "posted",
        PostDeleted = "post_deleted",
        Commented = "commented",
        CommentEdited = "comment_edited",
        CommentDeleted = "comment_deleted",
        CommentRemoved = "comment_removed",
        CommentPurged = "comment_purged",
        CommentsLocked = "comments_locked",
        CommentsUnlocked = "comments_unlocked",
    }
}

impl Done {
    /// What the next page says.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::ActingAs => "You are acting as this user now.",
            Self::ActingStopped => "You are not acting as a user any more.",
            Self::Followed => "Followed.",
            Self::Unfollowed => "Unfollowed.",
            Self::FollowerRemoved => "The follower was removed.",
            Self::Dismissed => "Dismissed: this user is not suggested again.",
            Self::Posted => "The post was registered.",
            Self::PostDeleted => "The post was deleted.",
            Self::Commented => "The comment was written.",
            Self::CommentEdited => "The comment was edited.",
            Self::CommentDeleted => "The comment was deleted.",
            Self::CommentRemoved => "The comment was removed.",
            Self::CommentPurged => {
                "The comment was purged. Its body is erased from all files within a day, or at once by compacting."
            }
            Self::CommentsLocked => "The comments are locked: new ones are refused.",
            Self::CommentsUnlocked => "The comments are open again.",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|done| done.name() == name)
    }
}

/// A request that the guard has admitted, and who made it.
pub(crate) struct Visit<S: Store> {
    call: Call<S>,
    pub(super) shared: Shared<S>,
    /// The user that the visitor acts as.
    pub(super) actor: Option<Id>,
    /// The path and query of the page, to come back to.
    pub(super) here: String,
    done: Option<Done>,
}

impl<S: Store> Deref for Visit<S> {
    type Target = Call<S>;

    fn deref(&self) -> &Call<S> {
        &self.call
    }
}

impl<S: Store> FromRequestParts<Shared<S>> for Visit<S> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> RestResult<Self> {
        let call = Call::from_request_parts(parts, shared).await?;
        let actor = cookies::actor(&parts.headers, call.id_kind());
        let mut query = Query::of(&parts.uri);
        let done = query.one(DONE).ok().flatten().and_then(|name| Done::from_name(&name));
        Ok(Self { call, shared: shared.clone(), actor, here: without_done(parts), done })
    }
}

/// The address of a page, without what was done before.
fn without_done(parts: &Parts) -> String {
    let path = parts.uri.path();
    let kept = parts.uri.query().unwrap_or_default().split('&');
    let kept: Vec<&str> =
        kept.filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(DONE)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

impl<S: Store> Visit<S> {
    /// Whether the visitor may do what needs a scope.
    pub(super) fn holds(&self, scope: Scope) -> bool {
        self.caller.holds(scope)
    }

    /// Whether the visitor acts as a user, and may write.
    pub(super) fn acts_as(&self, user: Id) -> bool {
        self.actor == Some(user) && self.holds(Scope::Write)
    }

    /// The user that the visitor may write as.
    pub(super) fn writer(&self) -> Option<Id> {
        self.actor.filter(|_| self.holds(Scope::Write))
    }

    /// Whether the profile has something.
    pub(super) fn has(&self, capability: Capability) -> bool {
        self.service.has(capability)
    }

    /// Who reads comments: the visitor in its own right, whichever user it acts as.
    pub(super) fn reader(&self) -> CommentViewer {
        CommentViewer { user: None, is_moderator: self.holds(Scope::Moderate) }
    }

    /// A page.
    pub(super) fn page(&self, title: &str, nav: Nav, content: &Markup) -> Response {
        self.page_with_script(title, nav, content, None)
    }

    /// A page with a script of its own.
    pub(super) fn page_with_script(
        &self,
        title: &str,
        nav: Nav,
        content: &Markup,
        script: Option<&'static str>,
    ) -> Response {
        let Self { call, shared, actor, here, done } = self;
        let signed_in = match &call.caller.identity {
            Identity::Service(name) => Some(&**name),
            Identity::Anyone | Identity::User(_) => None,
        };
        let frame = Frame {
            title,
            nav,
            settings: &shared.console.settings,
            scopes: call.caller.scopes,
            signed_in,
            actor: *actor,
            here,
            notice: done.map(Done::message),
            script,
        };
        page::respond(StatusCode::OK, frame.render(content))
    }

    /// Sends the visitor to the page that its form names, or to another one, which reports what was done.
    pub(super) fn go_on(&self, form: &mut Form, otherwise: &str, done: Done) -> Response {
        let next = form.take("next").filter(|next| is_own_page(next));
        let next = next.unwrap_or_else(|| otherwise.to_owned());
        let (address, fragment) =
            next.split_once('#').map_or((next.as_str(), None), |(address, at)| (address, Some(at)));
        let separator = if address.contains('?') { '&' } else { '?' };
        let fragment = fragment.map_or_else(String::new, |fragment| format!("#{fragment}"));
        redirect(&format!("{address}{separator}{DONE}={}{fragment}", done.name()))
    }

    /// As [`Visit::go_on`], after a write: the next pages show at least that.
    pub(super) fn written(&self, form: &mut Form, otherwise: &str, done: Done, at: Position) -> Response {
        let mut response = self.go_on(form, otherwise, done);
        let token = self.token_after(at);
        response.headers_mut().append(SET_COOKIE, self.cookie(cookies::TOKEN, &token));
        response
    }

    /// A cookie until the browser ends; an empty one removes it.
    pub(super) fn cookie(&self, name: &'static str, value: &str) -> HeaderValue {
        let seconds = value.is_empty().then_some(0);
        NewCookie { name, value, seconds, is_secure: self.shared.is_encrypted }.header()
    }
}

/// Whether an address is a page of the console, and of no other site. It must be written as the page is: a browser would take `./`
/// and `%2e` out, and arrive at another one than was judged.
pub(super) fn is_own_page(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let is_plain = !path.contains('%') && !path.split('/').any(|segment| matches!(segment, "." | ".."));
    owns(path) && is_plain && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Sends the visitor to another page, which is read with GET.
pub(super) fn redirect(address: &str) -> Response {
    let address = HeaderValue::from_str(address).unwrap_or(HeaderValue::from_static(ROOT));
    let headers = [(LOCATION, address), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_console_are_gone_back_to() {
        for own in ["/console", "/console/users/1?cursor=a&b=c#x"] {
            assert!(is_own_page(own), "{own}");
        }
        for other in [
            "",
            "/",
            "/consoles",
            "//example.org/console",
            "https://example.org/console",
            "/v1/users/1",
            "/console\\..",
            "/console/./admin/backup",
            "/console/users/../admin/backup",
            "/console/%2e/admin/backup",
            "/console/..",
            "/console/\r\nset-cookie: a=b",
        ] {
            assert!(!is_own_page(other), "{other}");
        }
    }

    #[test]
    fn every_report_has_a_name() {
        for &done in Done::ALL {
            assert_eq!(Done::from_name(done.name()), Some(done));
            assert!(!done.message().is_empty());
        }
        assert_eq!(Done::from_name("<script>"), None);
    }
}
