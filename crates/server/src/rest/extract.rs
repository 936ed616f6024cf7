//! What handlers take out of a request. A part that is not valid is refused with a problem document. Query strings have a
//! file of their own.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kinfolk_core::changes::Changes;
use kinfolk_core::comments::{CommentId, CommentThreads, Moderator, Viewer as CommentViewer};
use kinfolk_core::feeds::Feeds;
use kinfolk_core::graph::Graph;
use kinfolk_core::suggestions::{SuggestionPage, Suggestions};
use kinfolk_core::{Error, Frontier, Id, IdKind, Position, Result};

use super::endpoint::Cost;
use super::problem::{Failure, RestResult};
use super::query::Query;
use super::request_id::RequestId;
use super::{Shared, Store};
use crate::access::{Actor, Caller, Permit, Viewer};
use crate::administration::Administration;
use crate::service::{Reading, Service};

/// The header that carries consistency tokens, both ways.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("kinfolk-token");
/// The header that says whether a write changed anything.
pub(crate) const CHANGED: HeaderName = HeaderName::from_static("kinfolk-changed");
/// The header in which a service names the actor.
pub(crate) const ACTOR: HeaderName = HeaderName::from_static("kinfolk-actor");

/// The header in which a client names what it may have to repeat.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The user that a request is made for, as its guard has resolved it.
#[derive(Clone, Debug)]
pub(crate) enum User {
    Unnamed,
    Actor(Actor),
    /// The body may name an author; without one, it is this user.
    Author {
        named: Option<Id>,
    },
    Viewer(Viewer),
    CommentViewer(CommentViewer),
    Moderator(Option<Moderator>),
}

/// A request that its guard has admitted. Only with it a handler reaches the graph.
pub(crate) struct Call<S: Store> {
    /// What is served.
    pub service: Arc<Service<S>>,
    /// Who calls.
    pub caller: Caller,
    pub(super) permit: Permit,
    /// The user that it is made for.
    pub(super) user: User,
    pub(super) cost: Cost,
    /// What the client has seen, by its token; nothing without one. A read shows at least that, and the token of a write covers
    /// it.
    pub seen: Frontier,
    /// What the request is called.
    pub request_id: RequestId,
}

impl<S: Store> Clone for Call<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            caller: self.caller.clone(),
            permit: self.permit,
            user: self.user.clone(),
            cost: self.cost,
            seen: self.seen.clone(),
            request_id: self.request_id.clone(),
        }
    }
}

impl<S: Store> Call<S> {
    /// The rules of edges.
    pub(crate) fn graph(&self) -> &Graph<S> {
        self.service.graph(self.permit)
    }

    /// The change log.
    pub(crate) fn changes(&self) -> &Changes<S> {
        self.service.changes(self.permit)
    }

    /// Suggestions, unless the profile lacks them.
    pub(crate) fn suggestions(&self) -> Result<&Suggestions<S::Suggestions>> {
        self.service.suggestions(self.permit)
    }

    /// Users that the viewer may know.
    pub(crate) async fn suggest(&self, limit: usize) -> Result<SuggestionPage> {
        self.service.suggest(self.permit, self.viewer()?, limit, &self.seen).await
    }

    /// Posts and feeds, unless the profile lacks them.
    pub(crate) fn feeds(&self) -> Result<&Feeds<S::Content>> {
        self.service.feeds(self.permit)
    }

    /// Comments, unless the profile lacks them.
    pub(crate) fn comments(&self) -> Result<&CommentThreads<S::Content>> {
        self.service.comments(self.permit)
    }

    /// Who acts.
    pub(crate) fn actor(&self) -> Result<Id> {
        let User::Actor(actor) = self.user else { return Err(undeclared(&self.user)) };
        Ok(actor.id())
    }

    /// Whose view it is.
    pub(crate) fn viewer(&self) -> Result<Viewer> {
        let User::Viewer(viewer) = self.user else { return Err(undeclared(&self.user)) };
        Ok(viewer)
    }

    /// Who reads comments.
    pub(crate) fn comment_viewer(&self) -> Result<CommentViewer> {
        let User::CommentViewer(viewer) = self.user else { return Err(undeclared(&self.user)) };
        Ok(viewer)
    }

    /// Who moderates, as far as it is known.
    pub(crate) fn moderator(&self) -> Result<Option<Moderator>> {
        let User::Moderator(moderator) = &self.user else { return Err(undeclared(&self.user)) };
        Ok(moderator.clone())
    }

    /// The author of a post, whose body names one or not. Charges the author for it.
    pub(crate) fn author(&self, in_body: Option<Id>) -> Result<Actor> {
        let User::Author { named } = self.user else { return Err(undeclared(&self.user)) };
        let author = self.caller.actor(in_body.or(named))?;
        self.service.limits.take_changes(author.id(), 1)?;
        Ok(author)
    }

    /// What operators may ask of the store.
    pub(crate) fn administration(&self) -> &dyn Administration {
        self.service.administration(self.permit)
    }

    /// For a read that is charged by rows.
    pub(crate) fn reading(&self) -> Reading<'_> {
        assert_eq!(self.cost, Cost::Rows, "an endpoint that reads many rows declares Cost::Rows");
        Reading { permit: self.permit, budget: &self.caller.budget, at_least: &self.seen }
    }

    /// The kind of ids that this deployment uses.
    pub(crate) fn id_kind(&self) -> IdKind {
        self.service.id_kind()
    }

    /// The token of a write: what the request carried, and what the write did.
    pub(crate) fn token_after(&self, written: Position) -> String {
        self.service.token_after(&self.seen, written)
    }
}

impl<S: Store> FromRequestParts<Shared<S>> for Call<S> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        call(parts).cloned().map_err(Failure)
    }
}

fn call<S: Store>(parts: &Parts) -> Result<&Call<S>> {
    // Only a route that everybody may call has none, and such a route asks for none.
    parts.extensions.get().ok_or(Error::Unauthenticated { detail: "this route has no caller" })
}

/// The value of a header that may be there once.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Error::InvalidRequest { detail: format!("the header {name} is given more than once") });
    }
    let not_text = |_| Error::InvalidRequest { detail: format!("the header {name} is not plain text") };
    value.to_str().map(Some).map_err(not_text)
}

/// The ids in the path, in its order.
pub(crate) struct Ids<const N: usize>(pub [Id; N]);

impl<const N: usize, S: Store> FromRequestParts<Shared<S>> for Ids<N> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> RestResult<Self> {
        let kind = call::<S>(parts)?.id_kind();
        Ok(Self(path_ids(parts, shared, |text| kind.parse(text)).await?))
    }
}

/// The comment that the path names.
pub(crate) struct NamedComment(pub CommentId);

impl<S: Store> FromRequestParts<Shared<S>> for NamedComment {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> RestResult<Self> {
        let [id] = path_ids(parts, shared, CommentId::parse).await?;
        Ok(Self(id))
    }
}

async fn path_ids<T, const N: usize, S: Store>(
    parts: &mut Parts,
    shared: &Shared<S>,
    parse: impl Fn(&str) -> Result<T>,
) -> Result<[T; N]> {
    let params = RawPathParams::from_request_parts(parts, shared).await;
    let not_text = |_| Error::InvalidRequest { detail: "the path is not valid UTF-8".to_owned() };
    let params = params.map_err(not_text)?;
    let ids: Vec<T> = params.iter().map(|(_, text)| parse(text)).collect::<Result<_>>()?;
    let missing = |_| Error::NotFound { detail: "the path does not have its ids".to_owned() };
    ids.try_into().map_err(missing)
}

/// A handler that asks for another user than its endpoint declares is a mistake in this program.
fn undeclared(user: &User) -> Error {
    Error::Storage { detail: format!("the endpoint declares another user than its handler takes: {user:?}") }
}

/// What the client calls its request, so that it can be repeated.
pub(crate) struct IdempotencyKey(pub Option<Arc<str>>);

impl<S: Store> FromRequestParts<Shared<S>> for IdempotencyKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> RestResult<Self> {
        Ok(Self(header(&parts.headers, &IDEMPOTENCY_KEY)?.map(Arc::from)))
    }
}

/// A body of JSON, not parsed yet.
pub(crate) struct JsonBody(pub Bytes);

impl<S: Store> FromRequest<Shared<S>> for JsonBody {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Shared<S>) -> RestResult<Self> {
        if !is_json(request.headers()) {
            return Err(Failure(Error::UnsupportedMediaType { expected: "application/json" }));
        }
        require_plain(request.headers())?;
        Ok(Self(read_body(request.into_body(), shared.settings.body_bytes_max).await?))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(text)) = header(headers, &CONTENT_TYPE) else { return false };
    let media_type = text.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
}

/// Refuses a body that is compressed: what it unpacks to could be much larger than what the limit of bodies allows.
pub(crate) fn require_plain(headers: &HeaderMap) -> Result<()> {
    let mut codings = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    let is_plain = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
    if codings.all(|coding| is_plain(coding.trim_ascii())) {
        Ok(())
    } else {
        Err(Error::UnsupportedContentCoding)
    }
}

/// A body that says nothing: none, or an empty JSON object. Fields that nobody reads are refused here as elsewhere.
pub(crate) struct NoBody;

impl<S: Store> FromRequest<Shared<S>> for NoBody {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Shared<S>) -> RestResult<Self> {
        if request.body().is_end_stream() {
            return Ok(Self);
        }
        let body = read_body(request.into_body(), shared.settings.body_bytes_max).await?;
        let blank = body.iter().all(u8::is_ascii_whitespace);
        if blank || serde_json::from_slice(&body).is_ok_and(|fields: serde_json::Map<_, _>| fields.is_empty())
        {
            return Ok(Self);
        }
        Err(Failure(Error::InvalidRequest { detail: "this call takes no body".to_owned() }))
    }
}

/// Neither parameters nor a body.
pub(crate) struct NoInput;

impl<S: Store> FromRequest<Shared<S>> for NoInput {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Shared<S>) -> RestResult<Self> {
        Query::of(request.uri()).end()?;
        NoBody::from_request(request, shared).await.map(|NoBody| Self)
    }
}

/// Reads a whole body, if it is not too large.
pub(crate) async fn read_body(body: Body, max: usize) -> Result<Bytes> {
    if body.size_hint().lower() > max as u64 {
        return Err(Error::TooLarge { max });
    }
    match Limited::new(body, max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { max }),
        Err(_) => Err(Error::InvalidRequest {
            detail: "the body ended early, or is not encoded as the headers say".to_owned(),
        }),
    }
}
