//! Stands in front of every command: refuses unknown and wrong calls, callers without the declared scope, and calls beyond
//! a budget. Handlers get what it has checked: a [`Permit`], an [`Actor`], a [`Viewer`].

use kinfolk_core::graph::{Side, UserSet};
use kinfolk_core::{Error, Result, Store};

use super::batch::Arguments;
use super::command::{ActorIn, Command, Cost, Run};
use super::keys;
use super::request::{invalid, syntax_error};
use super::session::Session;
use super::subcommand;
use crate::access::{Actor, Caller, Permit, Viewer};
use crate::metrics::Operation;
use crate::service::Service;

/// The guard of one batch. It keeps what it has found about the caller.
#[derive(Debug)]
pub(super) struct Guard {
    /// Whether the caller's budget covers the whole batch.
    is_paid: bool,
    /// The last permit of this batch.
    permit: Option<Permit>,
}

/// A command that may run.
pub(super) struct Admitted<S: Store> {
    pub command: &'static Command<S>,
    /// For a command that needs a scope.
    permit: Option<Permit>,
}

impl<S: Store> Admitted<S> {
    /// # Errors
    /// If the command declares no scope.
    pub(crate) fn permit(&self) -> Result<Permit> {
        self.permit.ok_or(AUTHENTICATION_REQUIRED)
    }
}

/// A command that may not run.
pub(super) struct Refusal {
    pub operation: Operation,
    pub error: Error,
}

const AUTHENTICATION_REQUIRED: Error = Error::Unauthenticated { detail: "authentication required" };

impl Guard {
    /// Takes the whole batch out of the caller's budget at once, if that covers it.
    pub(crate) fn of_batch<S: Store>(session: &Session<S>, commands: usize) -> Self {
        let budget = session.caller.as_ref().map(|caller| &caller.budget);
        Self { is_paid: budget.is_none_or(|budget| budget.take(commands as u32).is_ok()), permit: None }
    }

    /// For commands that were paid for when they were queued.
    pub(crate) fn of_transaction() -> Self {
        Self { is_paid: true, permit: None }
    }

    /// The caller has changed, and with it everything that was found.
    pub(crate) fn reset(&mut self) {
        *self = Self { is_paid: false, permit: None };
    }

    /// Forgets what was found, after commands that another guard has let through.
    pub(crate) fn resume_after(&mut self, other: &Self) {
        *self = Self { is_paid: self.is_paid && other.is_paid, permit: None };
    }

    /// Finds the command and refuses what may not run.
    pub(crate) fn admit<S: Store>(
        &mut self,
        session: &Session<S>,
        arguments: Arguments<'_>,
    ) -> std::result::Result<Admitted<S>, Refusal> {
        let name = arguments.get(0).unwrap_or_default();
        let found = Command::find(name);
        self.check(session, name, found, arguments).map_err(|error| Refusal {
            operation: found.map_or(Operation::Other, |command| command.operation),
            error,
        })
    }

    fn check<S: Store>(
        &mut self,
        session: &Session<S>,
        name: &[u8],
        found: Option<&'static Command<S>>,
        arguments: Arguments<'_>,
    ) -> Result<Admitted<S>> {
        let is_open = found.is_some_and(|command| command.is_open);
        if session.caller.is_none() && !is_open {
            return Err(AUTHENTICATION_REQUIRED);
        }
        let command = found.ok_or_else(|| unknown(name))?;
        if !command.takes(arguments.len()) {
            return Err(subcommand::wrong_number(command.name));
        }
        // A caller whose credential has ended may send another.
        let permit = match &session.caller {
            Some(caller) if !is_open => self.permit(caller, command)?,
            _ => None,
        };
        if let Some(capability) = command.capability {
            session.shared.service.require(capability)?;
        }
        Ok(Admitted { command, permit })
    }

    fn permit<S: Store>(&mut self, caller: &Caller, command: &Command<S>) -> Result<Option<Permit>> {
        let permit = match command.scope {
            None => caller.check().map(|()| None)?,
            Some(scope) => {
                let known = self.permit.filter(|permit| permit.covers(scope));
                self.permit = Some(known.map_or_else(|| caller.permit(scope), Ok)?);
                self.permit
            }
        };
        if !self.is_paid {
            caller.budget.take(1)?;
        }
        Ok(permit)
    }
}

/// The actor that the first argument names, if the caller may act in its name.
pub(super) fn actor<S: Store>(
    session: &Session<S>,
    command: &Command<S>,
    arguments: Arguments<'_>,
) -> Result<Actor> {
    let caller = session.caller.as_ref().ok_or(AUTHENTICATION_REQUIRED)?;
    let kind = session.shared.service.id_kind();
    let first = arguments.get(1).ok_or_else(syntax_error)?;
    let named = match command.run {
        Run::Write(ActorIn::Key, _) => match keys::parse(kind, first)? {
            UserSet { side: Side::Following, of } => of,
            UserSet { side: Side::Followers, .. } => {
                return Err(invalid("followers:ID is read-only: write to the following:ID of the follower"));
            }
        },
        _ => kind.parse_bytes(first)?,
    };
    caller.actor(Some(named))
}

/// The viewer that the first argument names, if the caller may see its view.
pub(super) fn viewer<S: Store>(session: &Session<S>, arguments: Arguments<'_>) -> Result<Viewer> {
    let caller = session.caller.as_ref().ok_or(AUTHENTICATION_REQUIRED)?;
    let first = arguments.get(1).ok_or_else(syntax_error)?;
    caller.viewer(Some(session.shared.service.id_kind().parse_bytes(first)?))
}

/// Refuses end users, if the command declares that it is for services.
pub(super) fn require_service<S: Store>(session: &Session<S>, command: &Command<S>) -> Result<()> {
    match &session.caller {
        Some(caller) if command.is_for_services => caller.require_service(),
        _ => Ok(()),
    }
}

/// Takes changes out of the actor's budget, if the command declares that cost.
pub(super) fn charge<S: Store>(
    service: &Service<S>,
    command: &Command<S>,
    actor: Actor,
    changes: usize,
) -> Result<()> {
    match command.cost {
        Cost::Changes => service.limits.take_changes(actor.id(), changes as u32),
        Cost::Request | Cost::Rows => Ok(()),
    }
}

/// Names the command, but none of its arguments: there may be secrets in them.
fn unknown(name: &[u8]) -> Error {
    let shown = subcommand::shown(name);
    invalid(format!("unknown command '{shown}'; COMMAND DOCS lists the commands"))
}
