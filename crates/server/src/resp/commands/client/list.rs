//! `CLIENT LIST` and `CLIENT INFO`: connections as lines of fields, with the names that Redis has for them. What is not known
//! here, such as file descriptors and buffers, is left out.

use std::fmt::Write;
use std::time::Instant;

use super::super::super::clients::{Activity, Client, Labels};
use super::super::prelude::*;
use crate::access::Identity;

/// This connection as a line.
pub(super) fn write_own<S: Store>(session: &Session<S>, out: &mut Output) {
    note_own(session);
    let mut line = String::new();
    write_line(session, &session.client, &mut line);
    out.verbatim(&line);
}

/// What this connection does is noted only after its commands.
fn note_own<S: Store>(session: &Session<S>) {
    let command = Command::<S>::number(b"client");
    session.client.note(Activity { at: Instant::now(), command, queued: None, version: session.version });
}

/// The connections that the caller may know of.
pub(super) fn write<S: Store>(session: &Session<S>, filter: Arguments<'_>, out: &mut Output) -> Result<()> {
    let caller = session.caller.as_ref().ok_or_else(syntax_error)?;
    let word = |number: usize| filter.get(number).unwrap_or_default();
    note_own(session);
    let mut clients = session.shared.clients.visible_to(caller);
    if filter.len() == 2 && is(word(0), "TYPE") {
        if !is_normal(word(1))? {
            clients.clear();
        }
    } else if filter.len() >= 2 && is(word(0), "ID") {
        let ids = filter.skip(1).iter().map(parse_id).collect::<Result<Vec<_>>>()?;
        clients.retain(|client| ids.contains(&client.id));
    } else if filter.len() > 0 {
        return Err(syntax_error());
    }
    let mut lines = String::new();
    clients.iter().for_each(|client| write_line(session, client, &mut lines));
    out.verbatim(&lines);
    Ok(())
}

/// Whether a type of connection is the only one that there is here.
pub(super) fn is_normal(kind: &[u8]) -> Result<bool> {
    match kind {
        kind if is(kind, "NORMAL") => Ok(true),
        kind if ["MASTER", "REPLICA", "SLAVE", "PUBSUB"].iter().any(|known| is(kind, known)) => Ok(false),
        kind => Err(invalid(format!("Unknown client type '{}'", subcommand::shown(kind)))),
    }
}

pub(super) fn parse_id(text: &[u8]) -> Result<u64> {
    number(text).map_err(|_| invalid("Invalid client ID"))
}

/// Who a connection is, as Redis names its users.
pub(super) fn user(identity: Option<&Identity>) -> String {
    let name = match identity {
        None => "(not authenticated)".to_owned(),
        Some(Identity::Anyone) => "default".to_owned(),
        Some(Identity::Service(name)) => name.to_string(),
        Some(Identity::User(id)) => id.to_string(),
    };
    // Fields are separated by spaces.
    name.replace(|letter: char| letter.is_whitespace() || letter.is_control(), "_")
}

fn write_line<S: Store>(session: &Session<S>, client: &Client, lines: &mut String) {
    let Labels { name, library_name, library_version, identity } = client.labels();
    let queued = client.queued();
    let command = client.command().and_then(|number| Command::<S>::ALL.get(usize::from(number)));
    let _ = write!(lines, "id={} addr={} ", client.id, client.addresses.peer);
    if let Some(local) = client.addresses.local {
        let _ = write!(lines, "laddr={local} ");
    }
    let listens = session.shared.tracking.listens(client.id);
    let flags = match (queued >= 0, listens) {
        (false, None) => "N",
        (true, None) => "x",
        (false, Some(false)) => "t",
        (true, Some(false)) => "xt",
        (false, Some(true)) => "tB",
        (true, Some(true)) => "xtB",
    };
    // Invalidations go to the connection itself.
    let redirection = if listens.is_some() { 0 } else { -1 };
    let _ = writeln!(
        lines,
        "name={name} age={} idle={} flags={flags} db=0 sub=0 psub=0 ssub=0 multi={queued} cmd={} user={} \
         redir={redirection} resp={} \
         lib-name={library_name} lib-ver={library_version}",
        client.age().as_secs(),
        client.idle().as_secs(),
        command.map_or("NULL", |command| command.name),
        user(identity.as_ref()),
        client.version(),
    );
}
