//! The console: pages for people who look at the graph, its feeds, threads and health in a browser. They call the operations that
//! REST calls, behind the same guards. The rules of the graph are in `kinfolk-core`; what requests are counted and charged for is
//! declared where a route is registered.
//!
//! HTML is written here, and the stylesheet and the scripts are files in `assets`; all of it is part of the binary. A browser sends
//! cookies instead of headers: the session, the user that the visitor acts as, and the token of its last write.

mod admin;
mod assets;
mod changes;
mod comments;
pub(crate) mod cookies;
mod error_page;
mod figures;
mod find;
mod form;
mod history;
mod lists;
mod live;
mod markup;
mod overview;
mod page;
mod picture;
mod posts;
mod session;
mod sign_in;
mod thread;
mod users;
mod visit;
mod warnings;

/// What the files of pages import.
mod prelude {
    pub(super) use axum::extract::State;
    pub(super) use axum::response::{IntoResponse, Response};
    pub(super) use axum::routing::{get, post};
    pub(super) use kinfolk_core::{EdgeKind, Error, Id, PageRequest, Result};
    pub(super) use maud::{Markup, html};

    pub(super) use super::form::Form;
    pub(super) use super::markup;
    pub(super) use super::page::Nav;
    pub(super) use super::visit::{Done, Visit};
    pub(super) use crate::access::Scope;
    pub(super) use crate::metrics::Operation;
    pub(super) use crate::rest::endpoint::{ActorRule, Cost, Endpoint};
    pub(super) use crate::rest::extract::{Ids, NamedComment};
    pub(super) use crate::rest::problem::{Failure, RestResult};
    pub(super) use crate::rest::query::Query;
    pub(super) use crate::rest::routes::Routes;
    pub(super) use crate::rest::{Shared, Store};
    pub(super) use crate::service::Capability;
}

use std::convert::Infallible;
use std::time::Instant;

use axum::http::HeaderMap;
use kinfolk_core::Result;
use parking_lot::Mutex;

use self::history::History;
use self::session::Sessions;
use crate::access::Caller;
use crate::rest::routes::Routes;
use crate::rest::{Shared, Store};
use crate::service::Service;

pub(crate) use error_page::{Asked, finish};

/// Where the console is.
pub(crate) const ROOT: &str = "/console";

/// What the console shows of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ConsoleSettings {
    /// What keeps the graph, such as "embedded".
    pub profile: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// The effective settings. Values have no secrets.
    pub settings: Vec<EffectiveSetting>,
}

/// A setting and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// Its key in the configuration file, with the section.
    pub key: String,
    /// Its value; empty for none.
    pub value: String,
    /// A flag, a variable, a line of the file, or the default.
    pub origin: String,
}

/// What the console keeps between requests.
pub(crate) struct Console {
    settings: ConsoleSettings,
    sessions: Sessions,
    history: Mutex<History>,
    started: Instant,
}

impl Console {
    pub(crate) fn new(settings: Option<ConsoleSettings>) -> Self {
        Self {
            settings: settings.unwrap_or_default(),
            sessions: Sessions::default(),
            history: Mutex::default(),
            started: Instant::now(),
        }
    }

    /// The caller behind a visitor.
    pub(crate) fn caller<S: Store>(&self, service: &Service<S>, headers: &HeaderMap) -> Result<Caller> {
        if service.access.is_open() {
            return service.access.anonymous();
        }
        let session = self.sessions.of(headers, service.context())?;
        service.access.resume(&session.key, session.ends_at)
    }
}

/// Whether a path is one of the console.
pub(crate) fn owns(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is a file that pages load, such as the one that is shown while the store loads.
pub(crate) fn is_asset(path: &str) -> bool {
    path.starts_with("/console/assets/")
}

/// Adds the routes of the console.
pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let families = [
        overview::routes,
        live::routes,
        sign_in::routes,
        find::routes,
        users::routes,
        lists::routes,
        picture::routes,
        posts::routes,
        comments::routes,
        changes::routes,
        admin::routes,
    ];
    assets::routes(families.into_iter().fold(routes, |routes, family| family(routes)))
}

/// Samples the metrics, for the live charts.
pub(crate) async fn watch<S: Store>(shared: Shared<S>) -> Infallible {
    if shared.settings.console.is_none() {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(history::INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(service) = shared.door.service() {
            shared.console.history.lock().sample(&service.metrics);
        }
    }
}
