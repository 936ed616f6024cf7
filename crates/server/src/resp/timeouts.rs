//! How long a connection may wait, and with which error it ends when it has waited for too long.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use kinfolk_core::{Error, Store};
use tokio::time::Sleep;

use super::session::Session;
use super::transport::Leftover;
use crate::access::Caller;

/// Why a connection is ended.
pub(super) enum End {
    /// The client was silent for too long, and gets no reply.
    Silent,
    /// The client gets this error first.
    WithError(Error),
}

/// The deadlines of one connection.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    /// A client that has not authenticated has one deadline, regardless of what it sends until then.
    unauthenticated_until: Option<Instant>,
    idle_until: Option<Instant>,
    /// Created when it is first needed: most connections have no deadline.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timeouts {
    /// The client has just been served, or has just come.
    pub(crate) fn renew<S: Store>(&mut self, session: &Session<S>) {
        let settings = &session.shared.settings;
        if session.caller.is_none() {
            self.idle_until = None;
            self.unauthenticated_until.get_or_insert_with(|| Instant::now() + settings.unauthenticated_max);
        } else {
            self.unauthenticated_until = None;
            self.idle_until = settings.idle_max.map(|max| Instant::now() + max);
        }
    }

    /// Until when the connection may wait.
    pub(crate) fn until<S: Store>(&self, session: &Session<S>, rest: &Leftover) -> Option<Instant> {
        let unfinished = unfinished_since(session, rest).map(|since| since + unfinished_max(session));
        let silent = earlier(self.unauthenticated_until, self.idle_until);
        earlier(earlier(silent, session.credential_until), unfinished)
    }

    /// Ready at that time. The timer is moved only when it must be: one that fires too early is set again then.
    pub(crate) fn poll(&mut self, until: Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = until.map(tokio::time::Instant::from) else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if sleep.deadline() > until {
            sleep.as_mut().reset(until);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= until {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(until);
        }
    }

    /// Whether the connection is to be ended now.
    pub(crate) fn end<S: Store>(&self, session: &Session<S>, rest: &Leftover) -> Option<End> {
        if let Some(Err(error)) = session.caller.as_ref().map(Caller::check) {
            return Some(End::WithError(error));
        }
        let now = Instant::now();
        let max = unfinished_max(session);
        let is_over = |since: Instant| since + max <= now;
        if unfinished_since(session, rest).is_some_and(is_over) {
            let what = if rest.since.is_some_and(is_over) { "a command" } else { "a transaction" };
            let seconds = max.as_secs_f64();
            let detail = format!("{what} was not finished within {seconds} s: send all of it at once");
            return Some(End::WithError(Error::InvalidRequest { detail }));
        }
        let is_late = earlier(self.unauthenticated_until, self.idle_until).is_some_and(|until| until <= now);
        is_late.then_some(End::Silent)
    }
}

fn unfinished_max<S: Store>(session: &Session<S>) -> Duration {
    session.shared.settings.unfinished_max
}

/// Since when there is something that the client has not finished.
fn unfinished_since<S: Store>(session: &Session<S>, rest: &Leftover) -> Option<Instant> {
    let transaction = session.transaction.as_ref().map(|queue| queue.opened_at);
    earlier(transaction, rest.since)
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}
