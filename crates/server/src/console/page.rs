//! What every page of the console has in common: the document around its content, and the headers that keep a browser from running
//! or loading anything that is not of this server.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kinfolk_core::Id;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{ConsoleSettings, markup};
use crate::access::{Scope, Scopes};

/// Nothing but what this server serves, no script or style within a page, and no page within another.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The parts of the console, as the navigation names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nav {
    Overview,
    Changes,
    Admin,
    /// A user or a post, which the search leads to.
    Found,
}

impl Nav {
    const LINKS: [(Self, &'static str, &'static str); 3] = [
        (Self::Overview, "Overview", "/console"),
        (Self::Changes, "Changes", "/console/changes"),
        (Self::Admin, "Admin", "/console/admin"),
    ];

    /// The scope without which a part is not shown.
    fn scope(self) -> Scope {
        if self == Self::Admin { Scope::Admin } else { Scope::Read }
    }
}

/// What is around the content of a page for a visitor who is known.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    /// The part that it belongs to.
    pub(super) nav: Nav,
    pub(super) settings: &'a ConsoleSettings,
    /// What the visitor may do.
    pub(super) scopes: Scopes,
    /// The name of the key that the visitor has signed in with.
    pub(super) signed_in: Option<&'a str>,
    /// The user that the visitor acts as.
    pub(super) actor: Option<Id>,
    /// The address of this page.
    pub(super) here: &'a str,
    /// What was just done.
    pub(super) notice: Option<&'static str>,
    /// The script of this page, beside the one of all pages.
    pub(super) script: Option<&'static str>,
}

impl Frame<'_> {
    /// The whole document.
    pub(super) fn render(&self, content: &Markup) -> Markup {
        let body = html! {
            a.skip href="#main" { "Skip to the content" }
            (self.header())
            main.page #main tabindex="-1" {
                @if let Some(notice) = self.notice {
                    div.notice.notice-ok role="status" { div { strong { (notice) } } }
                }
                (content)
            }
            (footer(self.settings))
        };
        document(self.title, self.script, &body)
    }

    fn header(&self) -> Markup {
        html! {
            header.site {
                div.site-bar {
                    (brand(26))
                    nav.site-nav aria-label="Main" {
                        @for (nav, name, address) in Nav::LINKS {
                            @if self.scopes.contains(nav.scope()) {
                                a href=(address) aria-current=[(self.nav == nav).then_some("page")] { (name) }
                            }
                        }
                    }
                    form.search role="search" action="/console/find" {
                        label.hidden-visually for="find" { "User, post or comment id" }
                        input.id #find name="id" type="search" placeholder="User, post or comment id" autocomplete="off" spellcheck="false" required;
                    }
                    div.site-end {
                        (self.acting_as())
                        @if let Some(name) = self.signed_in {
                            form method="post" action="/console/sign-out" {
                                button.button.button-quiet title={ "Signed in with the key of " (name) } { "Sign out" }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Chooses the user that the visitor acts as.
    fn acting_as(&self) -> Markup {
        html! {
            details.menu {
                @if let Some(actor) = self.actor {
                    summary.button.button-quiet {
                        span.dot.tone-rate {} span.acting-word { "Acting as" } " " span.id { (actor) }
                    }
                    div.menu-panel {
                        p {
                            "You act as user " (markup::user(actor)) "."
                            @if self.scopes.contains(Scope::Write) { " What you write is written in this user’s name." }
                        }
                        form method="post" action="/console/act-as" {
                            input type="hidden" name="next" value=(self.here);
                            button.button { "Stop acting as this user" }
                        }
                    }
                } @else {
                    summary.button.button-quiet { "Act as a user" }
                    div.menu-panel {
                        p {
                            @if self.scopes.contains(Scope::Write) { "Choose a user to see what is between it and others, and to write in its name." }
                            @else { "Choose a user to see what is between it and others." }
                        }
                        form.form method="post" action="/console/act-as" {
                            input type="hidden" name="next" value=(self.here);
                            div.field {
                                label for="act-as" { "User id" }
                                input.id #act-as name="user" required autocomplete="off" spellcheck="false";
                            }
                            button.button.button-primary { "Act as this user" }
                        }
                    }
                }
            }
        }
    }
}

/// A page for a visitor who is not known, or about nothing in particular: no navigation, little text.
pub(super) struct SoloPage<'a> {
    pub(super) title: &'a str,
    pub(super) settings: &'a ConsoleSettings,
}

impl SoloPage<'_> {
    /// The whole document.
    pub(super) fn render(&self, content: &Markup) -> Markup {
        let body = html! {
            main.solo #main {
                (brand(34))
                (content)
            }
            (footer(self.settings))
        };
        document(self.title, None, &body)
    }
}

fn document(title: &str, script: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Kinfolk" }
                link rel="icon" href="/console/assets/logo.svg" type="image/svg+xml";
                link rel="stylesheet" href="/console/assets/console.css";
                script type="module" src="/console/assets/console.js" {}
                @if let Some(script) = script {
                    script type="module" src={ "/console/assets/" (script) } {}
                }
            }
            body { (body) }
        }
    }
}

fn brand(size: u32) -> Markup {
    html! {
        a.brand href="/console" { img src="/console/assets/logo.svg" alt="" width=(size) height=(size); "Kinfolk" }
    }
}

fn footer(settings: &ConsoleSettings) -> Markup {
    let ConsoleSettings { profile, version, .. } = settings;
    html! {
        footer.site-foot {
            span { "Kinfolk " (version) " · " (profile) " profile" }
            span { a.linked href="/openapi.json" { "OpenAPI" } }
        }
    }
}

/// The response with a page.
pub(super) fn respond(status: StatusCode, PreEscaped(text): Markup) -> Response {
    let mut response = (status, text).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    protect(&mut response);
    response
}

/// Adds the headers that restrict what a browser does with a response.
pub(super) fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // Without any, a browser would not say which page a form comes from.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
}
