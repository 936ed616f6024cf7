//! The suite: named cases that every store must pass, for both kinds of ids and for two kinds of edge.
//!
//! Each sentence of the contracts of the ports in `kinfolk_core::graph`, `kinfolk_core::suggestions`, `kinfolk_core::feeds` and
//! `kinfolk_core::comments` has a case. Every run of a case gets a fresh store, and every read of it
//! asks to show at least what the case has written.

mod changes;
mod client;
mod comments;
mod feeds;
mod graph;
mod subject;
mod suggestions;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kinfolk_core::{EdgeKind, GraphStore, IdKind};

use crate::random::compare::KINDS;
use crate::{AllPorts, ContentPorts, ModelStore, StoreFactory, SuggestionPorts};
use subject::Subject;

/// A case and its name.
type Case<S> = (&'static str, fn(&Subject<S>));

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

/// Runs the cases of the graph's ports for every scope, and panics with a list of those that failed.
pub fn run_graph<S: GraphStore>(make: StoreFactory<'_, S>) {
    run_cases(&graph_cases(), make);
}

/// As [`run_graph`], for suggestions.
pub fn run_suggestions<S: SuggestionPorts>(make: StoreFactory<'_, S>) {
    run_cases(&suggestion_cases(), make);
}

/// As [`run_graph`], for posts, feeds and comments.
pub fn run_content<S: ContentPorts>(make: StoreFactory<'_, S>) {
    run_cases(&content_cases(), make);
}

/// Runs every case for every scope, and panics with a list of those that failed.
pub fn run<S: AllPorts>(make: StoreFactory<'_, S>) {
    run_cases(&cases(), make);
}

/// Runs one case of the graph's ports for one scope.
pub fn run_graph_case_in<S: GraphStore>(name: &str, scope: CaseScope, make: StoreFactory<'_, S>) {
    outcome(named(graph_cases(), name), scope, make).unwrap_or_else(|failure| panic!("{failure}"));
}

/// As [`run_graph_case_in`], for suggestions.
pub fn run_suggestion_case_in<S: SuggestionPorts>(name: &str, scope: CaseScope, make: StoreFactory<'_, S>) {
    outcome(named(suggestion_cases(), name), scope, make).unwrap_or_else(|failure| panic!("{failure}"));
}

/// The names of the cases of suggestions that are found in the request.
pub fn candidate_case_names() -> impl Iterator<Item = &'static str> {
    suggestions::candidate_cases::<ModelStore>().into_iter().map(|(name, _)| name)
}

/// The names of the cases of the graph's ports.
pub fn graph_case_names() -> impl Iterator<Item = &'static str> {
    graph_cases::<ModelStore>().into_iter().map(|(name, _)| name)
}

/// Runs one case for every scope.
pub fn run_case<S: AllPorts>(name: &str, make: StoreFactory<'_, S>) {
    run_cases(&[case(name)], make);
}

/// Runs one case for one scope. The message of a failure names all three.
pub fn run_case_in<S: AllPorts>(name: &str, scope: CaseScope, make: StoreFactory<'_, S>) {
    outcome(case(name), scope, make).unwrap_or_else(|failure| panic!("{failure}"));
}

/// The names of all cases, in the order in which they run.
pub fn case_names() -> impl Iterator<Item = &'static str> {
    cases::<ModelStore>().into_iter().map(|(name, _)| name)
}

fn run_cases<S: GraphStore>(cases: &[Case<S>], make: StoreFactory<'_, S>) {
    let mut failures = Vec::new();
    for &case in cases {
        failures.extend(CaseScope::all().filter_map(|scope| outcome(case, scope, make).err()));
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn case<S: AllPorts>(name: &str) -> Case<S> {
    named(cases(), name)
}

fn named<S>(cases: Vec<Case<S>>, name: &str) -> Case<S> {
    let found = cases.into_iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("there is no case named {name}"))
}

fn outcome<S: GraphStore>(
    (name, case): Case<S>,
    scope: CaseScope,
    make: StoreFactory<'_, S>,
) -> Result<(), String> {
    let run = || case(&Subject::new(make, scope));
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let CaseScope { id_kind, edge_kind } = scope;
        let message = message(&*panic);
        format!("case {name} with {} ids and {} edges: {message}", id_kind.name(), edge_kind.name())
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

fn cases<S: AllPorts>() -> Vec<Case<S>> {
    [graph_cases(), suggestion_cases(), content_cases()].concat()
}

fn graph_cases<S: GraphStore>() -> Vec<Case<S>> {
    [graph::cases(), changes::cases()].concat()
}

fn suggestion_cases<S: SuggestionPorts>() -> Vec<Case<S>> {
    suggestions::cases()
}

fn content_cases<S: ContentPorts>() -> Vec<Case<S>> {
    [feeds::cases(), comments::cases()].concat()
}

/// Lists functions of a file as cases, each under its own name, with the ports that they need.
macro_rules! list_cases {
    ($ports:ident; $($case:ident),+ $(,)?) => {
        pub(super) fn cases<S: $ports>() -> Vec<crate::cases::Case<S>> {
            vec![$((stringify!($case), $case::<S>)),+]
        }
    };
}
use list_cases;
