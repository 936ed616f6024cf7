//! The suite: named cases that every store must pass, for both kinds of ids and for two kinds of edge.
//!
//! Each sentence of the contracts of the ports in `kinfolk_core::graph`, `kinfolk_core::suggestions`, `kinfolk_core::feeds` and
//! `kinfolk_core::comments` has a case. Every run of a case gets a fresh store, and every read of it
//! asks to show at least what the case has written.

mod checks;
mod client;
mod comments;
mod edges;
mod feeds;
mod inboxes;
mod log;
mod posts;
mod subject;
mod suggestions;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kinfolk_core::{EdgeKind, GraphStore, IdKind};

use crate::StoreFactory;
use crate::ports::{AllPorts, CommentPorts, EdgePorts, FeedPorts, InboxPorts, PostPorts, SuggestionPorts};
use crate::random::compare::KINDS;
use subject::Subject;

/// A case for stores with certain ports.
pub struct Case<S> {
    name: &'static str,
    run: fn(&Subject<S>),
}

impl<S> Clone for Case<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Case<S> {}

impl<S> Case<S> {
    /// Its name, which no other case has.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs it for one scope. The message of a failure names both.
    ///
    /// # Panics
    /// If the store fails it.
    pub fn run_in(&self, scope: CaseScope, make: StoreFactory<'_, S>) {
        self.outcome(scope, make).unwrap_or_else(|failure| panic!("{failure}"));
    }

    fn outcome(&self, scope: CaseScope, make: StoreFactory<'_, S>) -> Result<(), String> {
        let run = || (self.run)(&Subject::new(make, scope));
        catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
            let CaseScope { id_kind, edge_kind } = scope;
            let (name, message) = (self.name, message(&*panic));
            format!("case {name} with {} ids and {} edges: {message}", id_kind.name(), edge_kind.name())
        })
    }
}

/// What a case is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseScope {
    /// The ids of the deployment.
    pub id_kind: IdKind,
    /// The kind of edge that the case is about.
    pub edge_kind: EdgeKind,
}

impl CaseScope {
    /// Everything that a whole run covers.
    pub fn all() -> impl Iterator<Item = Self> {
        let with_kinds = |id_kind| KINDS.into_iter().map(move |edge_kind| Self { id_kind, edge_kind });
        [IdKind::Integer, IdKind::Uuid].into_iter().flat_map(with_kinds)
    }
}

/// Runs cases for every scope.
///
/// # Panics
/// With a list of those that failed.
pub fn run<S>(cases: &[Case<S>], make: StoreFactory<'_, S>) {
    let mut failures = Vec::new();
    for case in cases {
        failures.extend(CaseScope::all().filter_map(|scope| case.outcome(scope, make).err()));
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// The case with a name.
///
/// # Panics
/// If there is none.
pub fn named<S>(cases: &[Case<S>], name: &str) -> Case<S> {
    let found = cases.iter().find(|case| case.name == name);
    *found.unwrap_or_else(|| panic!("there is no case named {name}"))
}

/// The cases of edges.
pub fn edges<S: EdgePorts>() -> Vec<Case<S>> {
    edges::cases()
}

/// The cases of the change log.
pub fn log<S: EdgePorts>() -> Vec<Case<S>> {
    log::cases()
}

/// The cases of checks, and those of edges and of the log that need checks, too. Cases of checks alone do not exist: they write
/// edges and read the log.
pub fn checks<S: GraphStore>() -> Vec<Case<S>> {
    [checks::cases(), edges::cases_with_checks(), log::cases_with_checks()].concat()
}

/// The cases of edges, the log and checks: the ports that every store has.
pub fn graph<S: GraphStore>() -> Vec<Case<S>> {
    [edges(), log(), checks()].concat()
}

/// The cases of reads without a token, for stores that measure their lag by the clock that they are given, or have none.
pub fn staleness<S: GraphStore>() -> Vec<Case<S>> {
    checks::staleness::cases()
}

/// The cases of suggestions that are found in the request.
pub fn candidates<S: SuggestionPorts>() -> Vec<Case<S>> {
    suggestions::candidates::cases()
}

/// The cases of suggestions.
pub fn suggestions<S: SuggestionPorts>() -> Vec<Case<S>> {
    suggestions::cases()
}

/// The cases of posts.
pub fn posts<S: PostPorts>() -> Vec<Case<S>> {
    posts::cases()
}

/// The cases of feeds.
pub fn feeds<S: FeedPorts>() -> Vec<Case<S>> {
    feeds::cases()
}

/// The cases of inboxes.
pub fn inboxes<S: InboxPorts>() -> Vec<Case<S>> {
    inboxes::cases()
}

/// The cases of comments.
pub fn comments<S: CommentPorts>() -> Vec<Case<S>> {
    comments::cases()
}

/// All cases.
pub fn all<S: AllPorts>() -> Vec<Case<S>> {
    [graph(), staleness(), suggestions(), posts(), feeds(), inboxes(), comments()].concat()
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// Lists functions of a file as a group of cases, each under its own name, with the ports that they need.
macro_rules! list_cases {
    ($group:ident: $ports:ident; $($case:ident),+ $(,)?) => {
        pub(in crate::cases) fn $group<S: $ports>() -> Vec<crate::cases::Case<S>> {
            vec![$(crate::cases::Case { name: stringify!($case), run: $case::<S> }),+]
        }
    };
}
use list_cases;
