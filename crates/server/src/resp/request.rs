//! A command that its guard has let through: its arguments, and the graph.

use std::str::FromStr;

use kinfolk_core::feeds::Feeds;
use kinfolk_core::graph::{Graph, UserSet};
use kinfolk_core::suggestions::{SuggestionPage, Suggestions};
use kinfolk_core::{Error, Frontier, Id, PageRequest, Result, Store};

use super::batch::Arguments;
use super::keys;
use crate::access::{Permit, Viewer};
use crate::limits::Budget;
use crate::service::{Reading, Service};

const PAGE_LIMIT_DEFAULT: usize = 50;

/// A command that may use the graph.
pub(super) struct Request<'a, S: Store> {
    pub service: &'a Service<S>,
    pub permit: Permit,
    pub arguments: Arguments<'a>,
    /// What the reply must show.
    pub at_least: &'a Frontier,
    /// What rows are charged to, for a command that declares such a cost.
    pub row_budget: Option<&'a Budget>,
}

/// An argument by name.
pub(super) struct Argument<'a> {
    name: &'a [u8],
    pub value: &'a [u8],
}

impl Argument<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        is(self.name, name)
    }
}

impl<'a, S: Store> Request<'a, S> {
    pub(crate) fn graph(&self) -> &'a Graph<S> {
        self.service.graph(self.permit)
    }

    pub(crate) fn feeds(&self) -> Result<&'a Feeds<S::Content>> {
        self.service.feeds(self.permit)
    }

    pub(crate) fn suggestions(&self) -> Result<&'a Suggestions<S::Suggestions>> {
        self.service.suggestions(self.permit)
    }

    pub(crate) async fn suggest(&self, viewer: Viewer, limit: usize) -> Result<SuggestionPage> {
        self.service.suggest(self.permit, viewer, limit, self.at_least).await
    }

    /// For a read that is charged by rows.
    pub(crate) fn reading(&self) -> Reading<'a> {
        let budget = self.row_budget.expect("a command that reads many rows declares Cost::Rows");
        Reading { permit: self.permit, budget, at_least: self.at_least }
    }

    pub(crate) fn argument(&self, number: usize) -> Result<&'a [u8]> {
        self.arguments.get(number).ok_or_else(syntax_error)
    }

    pub(crate) fn id(&self, number: usize) -> Result<Id> {
        self.service.id_kind().parse_bytes(self.argument(number)?)
    }

    pub(crate) fn key(&self, number: usize) -> Result<UserSet> {
        keys::parse(self.service.id_kind(), self.argument(number)?)
    }

    /// All arguments from one on, as ids.
    pub(crate) fn ids(&self, first: usize) -> impl Iterator<Item = Result<Id>> {
        let kind = self.service.id_kind();
        self.arguments.skip(first).iter().map(move |text| kind.parse_bytes(text))
    }

    /// All arguments from one on, as keys.
    pub(crate) fn keys(&self, first: usize) -> impl Iterator<Item = Result<UserSet>> {
        let kind = self.service.id_kind();
        self.arguments.skip(first).iter().map(move |text| keys::parse(kind, text))
    }

    /// All arguments from one on, as names with values.
    pub(crate) fn options(&self, first: usize) -> impl Iterator<Item = Result<Argument<'a>>> {
        let arguments = self.arguments.skip(first);
        (0..arguments.len().div_ceil(2)).map(move |pair| {
            let name = arguments.get(pair * 2).ok_or_else(syntax_error)?;
            Ok(Argument { name, value: arguments.get(pair * 2 + 1).ok_or_else(syntax_error)? })
        })
    }

    /// The options `LIMIT n` and `CURSOR c`, from an argument on.
    pub(crate) fn page(&self, first: usize) -> Result<PageRequest<'a>> {
        let mut page = PageRequest { limit: PAGE_LIMIT_DEFAULT, cursor: None };
        for option in self.options(first) {
            match option? {
                option if option.is("LIMIT") => page.limit = number(option.value)?,
                option if option.is("CURSOR") => page.cursor = Some(text(option.value)?),
                _ => return Err(syntax_error()),
            }
        }
        Ok(page)
    }
}

pub(super) fn syntax_error() -> Error {
    invalid("syntax error")
}

pub(super) fn invalid(detail: impl Into<String>) -> Error {
    Error::InvalidRequest { detail: detail.into() }
}

/// Whether an argument is that word, in any case.
pub(super) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A decimal number.
pub(super) fn number<T: FromStr>(argument: &[u8]) -> Result<T> {
    let digits = Some(argument).filter(|text| text.first() != Some(&b'+'));
    let text = digits.and_then(|text| str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| invalid("value is not an integer or out of range"))
}

/// Text that a client chooses: a name, a token, a cursor.
pub(super) fn text(argument: &[u8]) -> Result<&str> {
    str::from_utf8(argument).map_err(|_| invalid("an argument is not UTF-8"))
}
