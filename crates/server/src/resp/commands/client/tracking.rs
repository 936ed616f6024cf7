//! `CLIENT TRACKING`, `CACHING`, `TRACKINGINFO` and `GETREDIR`: clients that cache what they read.

use super::super::super::tracking::{Mode, Subscription, Wanted};
use super::super::prelude::*;
use crate::access::Scope;

/// How many prefixes a connection has at most.
const PREFIXES_MAX: usize = 64;
const PREFIX_BYTES_MAX: usize = 64;

/// What a client asked for.
#[derive(Default)]
struct Options {
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_no_loop: bool,
    prefixes: Vec<Box<[u8]>>,
}

impl Options {
    fn parse(arguments: Arguments<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word {
                word if is(word, "BCAST") => options.is_broadcast = true,
                word if is(word, "OPTIN") => options.is_opt_in = true,
                word if is(word, "OPTOUT") => options.is_opt_out = true,
                word if is(word, "NOLOOP") => options.is_no_loop = true,
                word if is(word, "PREFIX") => options.add_prefix(words.next().ok_or_else(syntax_error)?)?,
                word if is(word, "REDIRECT") => {
                    return Err(invalid(
                        "REDIRECT is not supported: use version 3 of the protocol, which needs no second connection",
                    ));
                }
                _ => return Err(syntax_error()),
            }
        }
        Ok(options)
    }

    fn add_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        if self.prefixes.len() == PREFIXES_MAX {
            return Err(Error::TooMany { what: "prefixes", count: PREFIXES_MAX + 1, max: PREFIXES_MAX });
        }
        if prefix.len() > PREFIX_BYTES_MAX {
            return Err(invalid(format!("a prefix has at most {PREFIX_BYTES_MAX} bytes")));
        }
        let overlaps = |other: &[u8]| other.starts_with(prefix) || prefix.starts_with(other);
        if self.prefixes.iter().any(|other| overlaps(other)) {
            let prefix = prefix.escape_ascii();
            return Err(invalid(format!("prefix '{prefix}' overlaps with another one of this client")));
        }
        self.prefixes.push(prefix.into());
        Ok(())
    }

    fn mode(self) -> Result<Mode> {
        match self {
            Self { is_opt_in: true, is_opt_out: true, .. } => {
                Err(invalid("you can't specify both OPTIN mode and OPTOUT mode"))
            }
            Self { is_broadcast: true, is_opt_in, is_opt_out, .. } if is_opt_in || is_opt_out => {
                Err(invalid("OPTIN and OPTOUT are not compatible with BCAST"))
            }
            Self { is_broadcast: false, ref prefixes, .. } if !prefixes.is_empty() => {
                Err(invalid("PREFIX option requires BCAST mode to be enabled"))
            }
            Self { is_broadcast: true, prefixes, .. } => Ok(Mode::Broadcast(prefixes)),
            Self { is_opt_in: true, .. } => Ok(Mode::OptIn),
            Self { is_opt_out: true, .. } => Ok(Mode::OptOut),
            _ => Ok(Mode::Default),
        }
    }
}

/// `TRACKING ON|OFF [BCAST] [PREFIX prefix …] [OPTIN] [OPTOUT] [NOLOOP]`.
pub(super) fn track<S: Store>(
    session: &mut Session<S>,
    switch: &[u8],
    options: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    let options = Options::parse(options)?;
    if is(switch, "OFF") {
        session.subscription = None;
        out.ok();
        return Ok(());
    }
    if !is(switch, "ON") {
        return Err(syntax_error());
    }
    if session.version == Version::Two {
        return Err(invalid("client tracking needs version 3 of the protocol: send HELLO 3 first"));
    }
    let is_no_loop = options.is_no_loop;
    let mode = options.mode()?;
    require_permission(session, &mode)?;
    if let Some(current) = &session.subscription {
        require_same_kind(&current.wanted.mode, &mode)?;
    }
    // The old one leaves before the new one comes: they have the same number.
    let is_replaced = session.subscription.take().is_some();
    let wanted = Wanted { mode, is_no_loop };
    let subscription = Subscription::new(&session.shared.tracking, session.id, wanted);
    if is_replaced {
        // The table no longer knows what the client has cached.
        subscription.drop_everything();
    }
    session.subscription = Some(Box::new(subscription));
    out.ok();
    Ok(())
}

/// Keys that a client has not read say who is active, as the change log does.
fn require_permission<S: Store>(session: &Session<S>, mode: &Mode) -> Result<()> {
    let Some(caller) = &session.caller else { return Ok(()) };
    caller.require(Scope::Read)?;
    if let Mode::Broadcast(_) = mode { caller.require_service() } else { Ok(()) }
}

/// What was cached in one mode can't be invalidated in another.
fn require_same_kind(current: &Mode, next: &Mode) -> Result<()> {
    if std::mem::discriminant(current) == std::mem::discriminant(next) {
        return Ok(());
    }
    Err(invalid(
        "you can't switch between modes before disabling tracking for this client: CLIENT TRACKING OFF first",
    ))
}

/// `CACHING YES|NO`.
pub(super) fn cache<S: Store>(session: &mut Session<S>, switch: &[u8], out: &mut Output) -> Result<()> {
    let Some(subscription) = &mut session.subscription else {
        return Err(invalid(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    subscription.caching = match subscription.wanted.mode {
        Mode::OptIn if is(switch, "YES") => Some(true),
        Mode::OptOut if is(switch, "NO") => Some(false),
        _ if is(switch, "YES") => {
            return Err(invalid("CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode"));
        }
        _ if is(switch, "NO") => {
            return Err(invalid("CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode"));
        }
        _ => return Err(syntax_error()),
    };
    out.ok();
    Ok(())
}

/// `TRACKINGINFO`, in the words of Redis.
pub(super) fn write_info<S: Store>(session: &Session<S>, out: &mut Output) {
    let subscription = session.subscription.as_deref();
    let mut flags = vec![if subscription.is_some() { "on" } else { "off" }];
    let mut prefixes: &[Box<[u8]>] = &[];
    if let Some(Subscription { wanted, caching, .. }) = subscription {
        match &wanted.mode {
            Mode::Default => {}
            Mode::OptIn => flags.push("optin"),
            Mode::OptOut => flags.push("optout"),
            Mode::Broadcast(of) => {
                flags.push("bcast");
                prefixes = of;
            }
        }
        match caching {
            Some(true) => flags.push("caching-yes"),
            Some(false) => flags.push("caching-no"),
            None => {}
        }
        if wanted.is_no_loop {
            flags.push("noloop");
        }
    }
    out.map(3);
    out.bulk("flags");
    out.set(flags.len());
    flags.iter().for_each(|flag| out.bulk(flag));
    out.bulk("redirect");
    write_redirection(session, out);
    out.bulk("prefixes");
    out.array(prefixes.len());
    prefixes.iter().for_each(|prefix| out.bulk(prefix));
}

/// `GETREDIR`: invalidations are never sent to another connection.
pub(super) fn write_redirection<S: Store>(session: &Session<S>, out: &mut Output) {
    out.integer(if session.subscription.is_some() { 0 } else { -1 });
}
