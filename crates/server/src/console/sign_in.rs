//! Signing in with an API key, signing out, and choosing the user to act as.

use axum::http::header::{REFRESH, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};

use super::ROOT;
use super::cookies::{self, NewCookie};
use super::error_page::sentence;
use super::lists;
use super::page::{self, SoloPage};
use super::prelude::*;
use super::session::{LIFETIME, Session};
use super::visit::{is_own_page, redirect};
use crate::metrics::Protocol;
use crate::rest::guard::FETCH_SITE;
use crate::service::Service;

const PATH: &str = "/console/sign-in";

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let open = Endpoint::open().in_console();
    routes
        .add_page(open, PATH, get(show::<S>).post(sign_in::<S>))
        .add_page(open, "/console/sign-out", post(sign_out::<S>))
        .add_page(Endpoint::read(Operation::Console).in_console(), "/console/act-as", post(act_as::<S>))
}

/// The address to go to after signing in. It must be a page: a download would begin unasked, and leave the visitor here.
fn next(wanted: Option<String>) -> String {
    let next = wanted.filter(|next| is_own_page(next)).unwrap_or_else(|| ROOT.to_owned());
    let page_of = |prefix: &str| next.starts_with(prefix).then(|| prefix.trim_end_matches('/').to_owned());
    page_of("/console/admin/").or_else(|| page_of("/console/changes/")).unwrap_or(next)
}

async fn show<S: Store>(State(shared): State<Shared<S>>, uri: Uri, headers: HeaderMap) -> RestResult {
    let next = next(Query::of(&uri).one("next")?);
    let service = shared.door.service().ok_or(Error::Loading)?;
    if service.access.is_open() || shared.console.caller(service, &headers).is_ok() {
        return Ok(redirect(&next));
    }
    let mut response = form(&shared, &next, None);
    // A browser that follows a link of another site keeps the session to itself. It sends it when this page leads on.
    if headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site") {
        let refresh = HeaderValue::from_str(&format!("0; url={next}"));
        response.headers_mut().extend(refresh.ok().map(|refresh| (REFRESH, refresh)));
    }
    Ok(response)
}

async fn sign_in<S: Store>(State(shared): State<Shared<S>>, mut fields: Form) -> RestResult {
    let next = next(fields.take("next"));
    let service = shared.door.service().ok_or(Error::Loading)?;
    if service.access.is_open() {
        return Ok(redirect(&next));
    }
    match begin(service, fields.take("key").as_deref().unwrap_or_default().trim()) {
        Ok(session) => {
            let cookie = NewCookie {
                name: cookies::SESSION,
                value: &session.seal(service.context()),
                seconds: Some(LIFETIME.as_secs()),
                is_secure: shared.is_encrypted,
            };
            let mut response = redirect(&next);
            response.headers_mut().append(SET_COOKIE, cookie.header());
            // The visitor before may have been somebody else.
            response.headers_mut().append(SET_COOKIE, removed(cookies::ACTOR, shared.is_encrypted));
            Ok(response)
        }
        Err(error @ (Error::Unauthenticated { .. } | Error::Forbidden { .. })) => {
            service.metrics.failed(Protocol::Rest, Operation::Other, error.code());
            Ok(form(&shared, &next, Some(&error)))
        }
        Err(error) => Err(Failure(error)),
    }
}

/// The session of somebody who shows a key. Every page needs to read.
fn begin<S: Store>(service: &Service<S>, key: &str) -> Result<Session> {
    let session = Session::begin(service.access.prove(key)?)?;
    let caller = service.access.resume(&session.key, session.ends_at)?;
    caller.admit(1)?;
    caller.require(Scope::Read)?;
    Ok(session)
}

fn form<S: Store>(shared: &Shared<S>, next: &str, error: Option<&Error>) -> Response {
    let described_by = error.map(|_| "key-error");
    let content = html! {
        section.panel {
            form.panel-body method="post" action=(PATH) {
                input type="hidden" name="next" value=(next);
                h1 { "Sign in" }
                p.muted {
                    "Sign in with an API key. Its scopes decide what you can see and do here. An operator creates keys with "
                    code { "kinfolk keys add" } "."
                }
                div.field {
                    label for="key" { "API key" }
                    input.id #key name="key" type="password" autocomplete="off" required autofocus
                        aria-invalid=[error.map(|_| "true")] aria-describedby=[described_by];
                    @if let Some(error) = error { p.field-error #key-error role="alert" { (sentence(&error.to_string())) } }
                }
                button.button.button-primary { "Sign in" }
            }
        }
        p.hint {
            "The session ends after " (LIFETIME.as_secs() / 3_600)
            " hours, with the key, or when you sign out. The key itself is not stored in the browser."
        }
    };
    let page = SoloPage { title: "Sign in", settings: &shared.console.settings };
    let status = if error.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    page::respond(status, page.render(&content))
}

async fn sign_out<S: Store>(State(shared): State<Shared<S>>, headers: HeaderMap, _: Form) -> RestResult {
    let service = shared.door.service().ok_or(Error::Loading)?;
    if let Ok(session) = shared.console.sessions.of(&headers, service.context()) {
        shared.console.sessions.sign_out(&session);
    }
    let mut response = redirect(PATH);
    for name in [cookies::SESSION, cookies::ACTOR, cookies::TOKEN] {
        response.headers_mut().append(SET_COOKIE, removed(name, shared.is_encrypted));
    }
    Ok(response)
}

/// The header that removes a cookie.
fn removed(name: &'static str, is_secure: bool) -> HeaderValue {
    NewCookie { name, value: "", seconds: Some(0), is_secure }.header()
}

/// Chooses the user that the visitor acts as; none without one.
async fn act_as<S: Store>(visit: Visit<S>, mut form: Form) -> RestResult {
    let user = form.id("user", visit.id_kind())?;
    let done = if user.is_some() { Done::ActingAs } else { Done::ActingStopped };
    let otherwise = user.map_or_else(|| ROOT.to_owned(), |user| format!("/console/users/{user}"));
    // A list about two users, and its cursor, would be of another two.
    if form.get("next").is_some_and(lists::needs_actor) {
        form.take("next");
    }
    let mut response = visit.go_on(&mut form, &otherwise, done);
    let value = user.map_or_else(String::new, |user| user.to_string());
    response.headers_mut().append(SET_COOKIE, visit.cookie(cookies::ACTOR, &value));
    Ok(response)
}
