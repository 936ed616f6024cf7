//! Query strings. Unknown parameters are refused, and so is a repeated parameter that has one value.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::LINK;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use kinfolk_api as api;
use kinfolk_core::graph::OverlapPage;
use kinfolk_core::{Error, Id, IdKind, PageRequest, Result};
use serde::Serialize;
use utoipa::IntoParams;

use super::problem::{Failure, RestResult};
use super::{Shared, Store};

const LIMIT_DEFAULT: usize = 50;

/// The path of a request, and the parameters that are not taken yet.
pub(crate) struct Query {
    path: String,
    left: Vec<(String, String)>,
}

impl Query {
    /// The parameters of an address.
    pub(crate) fn of(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let left = pairs.map(|(name, value)| (Cow::into_owned(name), Cow::into_owned(value))).collect();
        Self { path: uri.path().to_owned(), left }
    }

    /// Takes all values of a parameter, in their order.
    pub(crate) fn many(&mut self, name: &str) -> Vec<String> {
        self.left.extract_if(.., |(known, _)| known == name).map(|(_, value)| value).collect()
    }

    /// Takes a parameter that may occur once.
    pub(crate) fn one(&mut self, name: &str) -> Result<Option<String>> {
        let mut values = self.many(name);
        if values.len() > 1 {
            return Err(invalid(format!("the parameter {name} is given more than once")));
        }
        Ok(values.pop())
    }

    /// Takes a parameter that is `true` or `false`; `false` if it is missing.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool> {
        match self.one(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid(format!("the parameter {name} must be true or false"))),
        }
    }

    /// Takes a parameter that is one of some names; `expected` lists them for the client.
    pub(crate) fn named<T>(
        &mut self,
        name: &str,
        from_name: fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let unknown = || invalid(format!("the parameter {name} must be {expected}"));
        from_name(&text).map(Some).ok_or_else(unknown)
    }

    /// Takes the number of entries of a page.
    pub(crate) fn limit(&mut self) -> Result<usize> {
        Ok(self.number("limit")?.unwrap_or(LIMIT_DEFAULT))
    }

    /// Takes a parameter that is a whole number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<usize>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid(format!("the parameter {name} must be a positive integer")));
        }
        // A number that does not fit is too large, and is refused as such where the maximum is known.
        Ok(Some(text.parse().unwrap_or(usize::MAX)))
    }

    /// As [`Query::number`], for a number that has a range.
    pub(crate) fn number_in(&mut self, name: &str, range: RangeInclusive<usize>) -> Result<Option<usize>> {
        let (min, max) = (*range.start(), *range.end());
        match self.number(name)? {
            Some(number) if !range.contains(&number) => {
                Err(invalid(format!("the parameter {name} must be between {min} and {max}, not {number}")))
            }
            number => Ok(number),
        }
    }

    /// Takes a parameter that is an id and may occur once.
    pub(crate) fn id(&mut self, name: &str, kind: IdKind) -> Result<Option<Id>> {
        self.one(name)?.map(|text| kind.parse(&text)).transpose()
    }

    /// Takes the ids of the parameter `id`, which must occur at least once.
    pub(crate) fn ids(&mut self, kind: IdKind) -> Result<Vec<Id>> {
        let ids: Vec<Id> = self.many("id").iter().map(|text| kind.parse(text)).collect::<Result<_>>()?;
        if ids.is_empty() {
            Err(invalid("the parameter id must be given at least once".to_owned()))
        } else {
            Ok(ids)
        }
    }

    /// Refuses parameters that were not taken.
    pub(crate) fn end(self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => Err(invalid(format!("the parameter {name:?} is not known here"))),
        }
    }
}

/// A request whose parameters are not as expected.
pub(crate) fn invalid(detail: String) -> Error {
    Error::InvalidRequest { detail }
}

impl<S: Store> FromRequestParts<Shared<S>> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        Ok(Self::of(&parts.uri))
    }
}

/// No parameters at all.
pub(crate) struct NoQuery;

impl<S: Store> FromRequestParts<Shared<S>> for NoQuery {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        Query::of(&parts.uri).end()?;
        Ok(Self)
    }
}

/// How a page is documented.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what Page reads")]
pub(crate) struct PageParameters {
    /// Maximum number of entries.
    #[param(minimum = 1, maximum = 1000, default = 50, required = false)]
    limit: u32,
    /// The `next` of the previous page.
    #[param(required = false)]
    cursor: String,
}

/// Which page of a list.
pub(crate) struct Page {
    path: String,
    limit: usize,
    cursor: Option<String>,
}

impl Page {
    /// Takes the page out of a query.
    pub(crate) fn take(query: &mut Query) -> Result<Self> {
        Ok(Self { path: query.path.clone(), limit: query.limit()?, cursor: query.one("cursor")? })
    }

    /// The request of the graph for it.
    pub(crate) fn request(&self) -> PageRequest<'_> {
        PageRequest { limit: self.limit, cursor: self.cursor.as_deref() }
    }

    /// The response with a page, and the link to the next one: the same path with `parameters` and the cursor.
    pub(crate) fn respond<T: Serialize>(
        &self,
        parameters: &[(&str, String)],
        page: impl Into<api::Page<T>>,
    ) -> Response {
        let page = page.into();
        (self.link(parameters, page.next.as_deref()), Json(page)).into_response()
    }

    /// As [`Page::respond`], for a page of a list that is counted.
    pub(crate) fn respond_counted(&self, parameters: &[(&str, String)], page: OverlapPage) -> Response {
        let page = api::CountedPage::from(page);
        (self.link(parameters, page.next.as_deref()), Json(page)).into_response()
    }

    /// The header with the link to the next page, if there is one.
    fn link(
        &self,
        parameters: &[(&str, String)],
        next: Option<&str>,
    ) -> Option<[(HeaderName, HeaderValue); 1]> {
        let Self { path, limit, .. } = self;
        let parameters: String = parameters.iter().map(|(name, value)| format!("{name}={value}&")).collect();
        let link = format!("<{path}?{parameters}limit={limit}&cursor={}>; rel=\"next\"", next?);
        HeaderValue::try_from(link).ok().map(|link| [(LINK, link)])
    }
}

impl<S: Store> FromRequestParts<Shared<S>> for Page {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> RestResult<Self> {
        let mut query = Query::from_request_parts(parts, shared).await?;
        let page = Self::take(&mut query)?;
        query.end()?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/?{text}").parse().unwrap())
    }

    fn detail<T>(result: Result<T>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn names_are_known_and_values_single() {
        let mut parameters = query("limit=7&id=1&id=%32&flag=true&limit=8&x%20y=1");
        assert!(detail(parameters.one("limit")).contains("limit"));
        assert_eq!(parameters.ids(IdKind::Integer).unwrap(), [Id::Integer(1), Id::Integer(2)]);
        assert!(parameters.flag("flag").unwrap());
        assert!(!parameters.flag("flag").unwrap());
        assert!(detail(parameters.end()).contains("x y"));
        assert!(query("").end().is_ok());
        assert!(query("").ids(IdKind::Integer).is_err());
    }

    #[test]
    fn limits_are_digits() {
        for (text, expected) in
            [("", Some(50)), ("limit=1", Some(1)), ("limit=99999999999999999999", Some(usize::MAX))]
        {
            assert_eq!(query(text).limit().ok(), expected, "{text}");
        }
        for text in ["limit=", "limit=-1", "limit=1.5", "limit=%C3%A9", "limit=+1"] {
            assert!(query(text).limit().is_err(), "{text}");
        }
    }
}
