//! What the commands do: each parses its arguments, asks the graph, answers. One file a family.
//!
//! A command answers only when nothing can fail any more, so that an error is its only reply.

pub(super) mod change;
pub(super) mod check;
mod client;
pub(super) mod connection;
mod counts;
mod describe;
mod lists;
mod members;
mod overlap;
pub(super) mod posts;
mod scan;
pub(super) mod server;
mod suggest;

use kinfolk_core::graph::UserSet;
use kinfolk_core::{Error, Frontier, Id, Result, Store};

use super::batch::Arguments;
use super::keys;
use super::reply::Output;
use super::table::Read;
use crate::limits::Budget;
use crate::service::Service;

/// A read: its arguments and what they are asked of.
pub(super) struct Request<'a, S: Store> {
    pub service: &'a Service<S>,
    pub arguments: Arguments<'a>,
    /// What the answer must show.
    pub at_least: &'a Frontier,
    /// What a read is charged to that walks far.
    pub budget: Option<&'a Budget>,
}

impl<'a, S: Store> Request<'a, S> {
    fn argument(&self, number: usize) -> Result<&'a [u8]> {
        self.arguments.get(number).ok_or_else(syntax_error)
    }

    fn id(&self, number: usize) -> Result<Id> {
        self.service.id_kind().parse_bytes(self.argument(number)?)
    }

    fn key(&self, number: usize) -> Result<UserSet> {
        keys::parse(self.service.id_kind(), self.argument(number)?)
    }

    /// All arguments from one on, as ids.
    fn ids(&self, first: usize) -> impl Iterator<Item = Result<Id>> {
        let kind = self.service.id_kind();
        self.arguments.skip(first).iter().map(move |text| kind.parse_bytes(text))
    }

    /// All arguments from one on, as keys.
    fn keys(&self, first: usize) -> impl Iterator<Item = Result<UserSet>> {
        let kind = self.service.id_kind();
        self.arguments.skip(first).iter().map(move |text| keys::parse(kind, text))
    }

    fn options(&self, first: usize) -> impl Iterator<Item = Result<(&'a [u8], &'a [u8])>> {
        options(self.arguments, first)
    }
}

/// The arguments from one on, as names with values.
fn options(arguments: Arguments<'_>, first: usize) -> impl Iterator<Item = Result<(&[u8], &[u8])>> {
    let arguments = arguments.skip(first);
    (0..arguments.len().div_ceil(2)).map(move |pair| {
        let name = arguments.get(pair * 2).ok_or_else(syntax_error)?;
        Ok((name, arguments.get(pair * 2 + 1).ok_or_else(syntax_error)?))
    })
}

/// Runs a read.
pub(super) async fn read<S: Store>(verb: Read, request: Request<'_, S>, out: &mut Output) -> Result<()> {
    match verb {
        Read::IsMember => check::one(verb, &request, out).await,
        Read::AreMembers => check::are_members(&request, out).await,
        Read::Follows => check::follows(&request, out).await,
        Read::Cardinality => counts::cardinality(&request, out).await,
        Read::Exists => counts::exists(&request, out).await,
        Read::Type => counts::kind(&request, out).await,
        Read::Counts => counts::counts(&request, out).await,
        Read::Scan => scan::scan(&request, out).await,
        Read::Members => members::members(&request, out).await,
        Read::Intersection => overlap::intersection(&request, out).await,
        Read::IntersectionCardinality => overlap::cardinality(&request, out).await,
        Read::Common => overlap::common(&request, out).await,
        Read::Known => overlap::known(&request, out).await,
        Read::Suggestions => suggest::suggestions(&request, out).await,
        Read::Posts | Read::Feed => posts::list(verb, &request, out).await,
        Read::Following | Read::Followers | Read::Friends => lists::list(verb, &request, out).await,
    }
}

fn syntax_error() -> Error {
    invalid("syntax error")
}

fn invalid(detail: impl Into<String>) -> Error {
    Error::InvalidRequest { detail: detail.into() }
}

/// Whether an argument is that word, in any case.
fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A decimal number.
fn number<T: std::str::FromStr>(argument: &[u8]) -> Result<T> {
    let digits = Some(argument).filter(|text| text.first() != Some(&b'+'));
    let text = digits.and_then(|text| str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| invalid("value is not an integer or out of range"))
}

/// Text that a client made up: a name, a token, a cursor.
fn text(argument: &[u8]) -> Result<&str> {
    str::from_utf8(argument).map_err(|_| invalid("an argument is not UTF-8"))
}
