//! `CLIENT KILL ip:port`, or with filters: ends connections, of those that the caller may list. They finish the commands that
//! they run.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::super::clients::Client;
use super::super::prelude::*;
use super::list;

/// Which connections are to end: those that match everything that is set.
#[derive(Debug, Default)]
struct Filter {
    id: Option<u64>,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    user: Option<String>,
    age_min: Option<Duration>,
    /// Of a type that no connection has.
    is_other_type: bool,
    keeps_caller: bool,
}

impl Filter {
    fn parse(options: Arguments<'_>) -> Result<Self> {
        let mut filter = Self { keeps_caller: true, ..Self::default() };
        for pair in 0..options.len().div_ceil(2) {
            let name = options.get(pair * 2).ok_or_else(syntax_error)?;
            let value = options.get(pair * 2 + 1).ok_or_else(syntax_error)?;
            if is(name, "ID") {
                let id = number(value).map_err(|_| invalid("client-id should be greater than 0"))?;
                filter.id = Some(id);
            } else if is(name, "ADDR") {
                filter.peer = Some(address(value)?);
            } else if is(name, "LADDR") {
                filter.local = Some(address(value)?);
            } else if is(name, "USER") {
                filter.user = Some(text(value)?.to_owned());
            } else if is(name, "TYPE") {
                filter.is_other_type = !list::is_normal(value)?;
            } else if is(name, "MAXAGE") {
                filter.age_min = Some(Duration::from_secs(number(value)?));
            } else if is(name, "SKIPME") && (is(value, "YES") || is(value, "NO")) {
                filter.keeps_caller = is(value, "YES");
            } else {
                return Err(syntax_error());
            }
        }
        Ok(filter)
    }

    fn matches(&self, client: &Client) -> bool {
        let is_user = |user: &String| *user == list::user(client.labels().identity.as_ref());
        !self.is_other_type
            && self.id.is_none_or(|id| id == client.id)
            && self.peer.is_none_or(|peer| peer == client.addresses.peer)
            && self.local.is_none_or(|local| Some(local) == client.addresses.local)
            && self.age_min.is_none_or(|age| client.age() >= age)
            && self.user.as_ref().is_none_or(is_user)
    }
}

fn address(text: &[u8]) -> Result<SocketAddr> {
    str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(|| invalid("No such client"))
}

pub(super) fn run<S: Store>(
    session: &mut Session<S>,
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    // The oldest form has an address only, replies OK, and ends the caller's own connection too.
    let only = arguments.get(0).filter(|_| arguments.len() == 1);
    let filter = match only {
        Some(text) => Filter { peer: Some(address(text)?), ..Filter::default() },
        None => Filter::parse(arguments)?,
    };
    let caller = session.caller.as_ref().ok_or_else(syntax_error)?;
    let mut found = session.shared.clients.visible_to(caller);
    found.retain(|client| filter.matches(client) && !(filter.keeps_caller && client.id == session.id));
    if found.is_empty() && only.is_some() {
        return Err(invalid("No such client"));
    }
    found.iter().for_each(|client| client.kill());
    match only {
        Some(_) => out.ok(),
        None => out.integer(found.len()),
    }
    Ok(())
}
