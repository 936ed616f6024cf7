//! The declaration of a command: name, arity, scope, cost and handler. The guard, dispatch, `COMMAND` and the access tests
//! are derived from it. The commands themselves are in [`super::commands`].

use futures_util::future::BoxFuture;
use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, Position, Result, Store};

use super::batch::Arguments;
use super::reply::Output;
use super::request::{Request, number};
use super::session::Session;
use super::subcommand::Subcommand;
use super::writes::Change;
use crate::access::{Actor, Scope, Viewer};
use crate::metrics::Operation;
use crate::service::Capability;

/// A command.
#[derive(Debug)]
pub struct Command<S: Store> {
    /// In lower case, as `COMMAND` lists it.
    pub name: &'static str,
    /// A short description.
    pub summary: &'static str,
    /// Its arguments, see [`super::syntax`].
    pub(super) syntax: &'static str,
    /// How its work grows; empty where that says nothing.
    pub(super) complexity: &'static str,
    /// Of a family of commands.
    pub(super) subcommands: &'static [Subcommand],
    /// The arguments of one valid call. An actor or viewer in it is user 7.
    pub example: &'static [&'static str],
    /// The number of arguments with the name; if negative, the minimum.
    pub(super) arity: i8,
    pub(super) keys: Keys,
    /// The flags and the group that `COMMAND` lists.
    pub(super) flags: &'static [&'static str],
    pub(super) group: &'static str,
    /// The metric that counts it.
    pub(super) operation: Operation,
    /// The scope that a caller needs; without one, any known caller may call it.
    pub scope: Option<Scope>,
    /// Whether clients that have not authenticated may call it, too.
    pub is_open: bool,
    /// Whether end users are refused.
    pub(super) is_for_services: bool,
    /// The capability that the profile must have.
    pub capability: Option<Capability>,
    pub(super) cost: Cost,
    /// Whether `MULTI` queues it.
    pub(super) is_queued: bool,
    /// Whether it is cancelled when its client disconnects: it can take long.
    pub(super) is_abandonable: bool,
    pub(super) run: Run<S>,
}

/// Where the keys of a command are, as Redis describes them; a negative `last` counts from the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub first: u8,
    pub last: i8,
    pub step: u8,
    /// The argument before the first key says how many there are.
    pub is_counted: bool,
}

impl Keys {
    pub(crate) const NONE: Self = Self { first: 0, last: 0, step: 0, is_counted: false };
    pub(crate) const ONE: Self = Self { first: 1, last: 1, step: 1, is_counted: false };
    pub(crate) const ALL: Self = Self { first: 1, last: -1, step: 1, is_counted: false };
    /// One, behind the name of a subcommand.
    pub(crate) const SECOND: Self = Self { first: 2, last: 2, step: 1, is_counted: false };
    /// As many as the first argument says.
    pub(crate) const COUNTED: Self = Self { first: 2, last: 0, step: 1, is_counted: true };

    /// The numbers of the arguments of a call that are keys; none if the call is wrong, or the command has no keys.
    pub(crate) fn places(self, call: Arguments<'_>) -> Option<Vec<usize>> {
        let first = usize::from(self.first);
        let end = if self.is_counted {
            first.checked_add(number::<usize>(call.get(first - 1)?).ok()?)?
        } else if self.last < 0 {
            call.len().checked_sub(usize::from(self.last.unsigned_abs()) - 1)?
        } else {
            usize::from(self.last.unsigned_abs()) + 1
        };
        let places: Vec<usize> =
            (first..end.min(call.len())).step_by(usize::from(self.step.max(1))).collect();
        (first > 0 && end <= call.len() && !places.is_empty()).then_some(places)
    }
}

/// The budgets that a command is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// One request of the caller.
    Request,
    /// One request of the caller, and more for many rows.
    Rows,
    /// One request of the caller, and a change of the actor for each edge or post.
    Changes,
}

/// Which user an end user must be to call a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorRule {
    /// Any user.
    Anyone,
    /// The actor, whose id is the first argument.
    Actor,
    /// The actor, whose `following:ID` is the first argument.
    ActorKey,
    /// The viewer, whose id is the first argument.
    Viewer,
    /// None: it is for services.
    Service,
}

/// Where the first argument names the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActorIn {
    Id,
    Key,
}

/// A handler. It gets what its guard has checked.
#[derive(Debug)]
pub(super) enum Run<S: Store> {
    /// With three arguments a check of one edge, which is served without a future where the store can. With more, a read.
    Check(ParseEdge<S>, Option<Read<S>>),
    Read(Read<S>),
    /// A read for a viewer.
    View(for<'a> fn(Viewer, &'a Request<'a, S>, &'a mut Output) -> BoxFuture<'a, Result<()>>),
    /// A write that is only parsed here: it is committed together with its neighbours.
    Write(ActorIn, fn(Actor, &Request<'_, S>) -> Result<Change>),
    /// A write with a commit of its own, on what the second argument names.
    Commit(for<'a> fn(Actor, Id, &'a Request<'a, S>) -> BoxFuture<'a, Result<Position>>),
    /// About the connection.
    Session(fn(&mut Session<S>, Arguments<'_>, &mut Output) -> Result<()>),
    /// About the server.
    Server(RunServer<S>),
    Exec,
}

pub(super) type RunServer<S> =
    for<'a> fn(&'a Session<S>, Arguments<'a>, &'a mut Output) -> BoxFuture<'a, Result<()>>;
pub(super) type ParseEdge<S> = fn(&Request<'_, S>) -> Result<Edge>;
pub(super) type Read<S> = for<'a> fn(&'a Request<'a, S>, &'a mut Output) -> BoxFuture<'a, Result<()>>;

const READ: &[&str] = &["readonly"];
/// Of a read whose keys are found only by its arguments.
pub(super) const MOVABLE_READ: &[&str] = &["readonly", "movablekeys"];
pub(super) const FAST_READ: &[&str] = &["readonly", "fast"];
const WRITE: &[&str] = &["write", "denyoom"];
pub(super) const SESSION: &[&str] = &["noscript", "loading", "stale", "fast"];
const OPEN: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];

/// Whether an arity allows this number of arguments, with the name.
pub(super) fn takes(arity: i8, arguments: usize) -> bool {
    let count = usize::from(arity.unsigned_abs());
    if arity < 0 { arguments >= count } else { arguments == count }
}

impl<S: Store> Command<S> {
    /// A command without a name that any known caller may call. What follows overrides its fields.
    const fn new(run: Run<S>) -> Self {
        Self {
            name: "",
            summary: "",
            syntax: "",
            complexity: "",
            subcommands: &[],
            example: &[],
            arity: 1,
            keys: Keys::NONE,
            flags: SESSION,
            group: "connection",
            operation: Operation::Other,
            scope: None,
            is_open: false,
            is_for_services: false,
            capability: None,
            cost: Cost::Request,
            is_queued: true,
            is_abandonable: false,
            run,
        }
    }

    pub(super) const fn session(run: fn(&mut Session<S>, Arguments<'_>, &mut Output) -> Result<()>) -> Self {
        Self::new(Run::Session(run))
    }

    /// For clients that have not authenticated, too.
    pub(super) const fn open(run: fn(&mut Session<S>, Arguments<'_>, &mut Output) -> Result<()>) -> Self {
        Self { is_open: true, flags: OPEN, ..Self::new(Run::Session(run)) }
    }

    pub(super) const fn server(run: RunServer<S>) -> Self {
        Self { group: "server", ..Self::new(Run::Server(run)) }
    }

    pub(super) const fn transaction(run: Run<S>) -> Self {
        Self { group: "transactions", is_queued: false, ..Self::new(run) }
    }

    pub(super) const fn check(edge: ParseEdge<S>, many: Option<Read<S>>) -> Self {
        Self { flags: FAST_READ, operation: Operation::Check, ..Self::reading(Run::Check(edge, many)) }
    }

    pub(super) const fn read(run: Read<S>) -> Self {
        Self::reading(Run::Read(run))
    }

    pub(super) const fn view(
        run: for<'a> fn(Viewer, &'a Request<'a, S>, &'a mut Output) -> BoxFuture<'a, Result<()>>,
    ) -> Self {
        Self::reading(Run::View(run))
    }

    const fn reading(run: Run<S>) -> Self {
        Self { flags: READ, group: "graph", scope: Some(Scope::Read), ..Self::new(run) }
    }

    pub(super) const fn write(actor: ActorIn, parse: fn(Actor, &Request<'_, S>) -> Result<Change>) -> Self {
        Self::changing(Run::Write(actor, parse))
    }

    pub(super) const fn commit(
        run: for<'a> fn(Actor, Id, &'a Request<'a, S>) -> BoxFuture<'a, Result<Position>>,
    ) -> Self {
        Self { arity: 3, ..Self::changing(Run::Commit(run)) }
    }

    const fn changing(run: Run<S>) -> Self {
        let (flags, scope, cost) = (WRITE, Some(Scope::Write), Cost::Changes);
        Self { flags, group: "graph", scope, cost, ..Self::new(run) }
    }

    /// Whether this number of arguments, with the name, is valid.
    pub(super) fn takes(&self, arguments: usize) -> bool {
        takes(self.arity, arguments)
    }

    /// Which user an end user must be; its handler needs that user.
    pub fn actor_rule(&self) -> ActorRule {
        match self.run {
            Run::Write(ActorIn::Key, _) => ActorRule::ActorKey,
            Run::Write(ActorIn::Id, _) | Run::Commit(_) => ActorRule::Actor,
            Run::View(_) => ActorRule::Viewer,
            Run::Server(_) if self.is_for_services => ActorRule::Service,
            Run::Check(..) | Run::Read(_) | Run::Session(_) | Run::Server(_) | Run::Exec => ActorRule::Anyone,
        }
    }
}
