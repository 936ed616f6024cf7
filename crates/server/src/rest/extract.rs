//! What routes take out of a request, each refused with a problem document if it is not as it should be. Query strings
//! have a file of their own.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kinfolk_core::comments::{CommentId, Moderator, Viewer};
use kinfolk_core::{Error, Frontier, Id, IdKind, Position, Result};

use super::problem::{Answered, Failure};
use super::request_id::RequestId;
use super::{Shared, Store};
use crate::access::{Caller, Identity, Scope};
use crate::service::Service;

/// The header that carries consistency tokens, both ways.
pub const TOKEN: HeaderName = HeaderName::from_static("kinfolk-token");
/// The header that says whether a write changed anything.
pub const CHANGED: HeaderName = HeaderName::from_static("kinfolk-changed");
/// The header in which a service names whom it acts for.
pub const ACTOR: HeaderName = HeaderName::from_static("kinfolk-actor");

/// The header in which a client names what it may have to repeat.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// An admitted request: who calls what.
pub struct Call<S: Store> {
    /// What is served.
    pub service: Arc<Service<S>>,
    /// Who calls.
    pub caller: Caller,
    /// What the request is called.
    pub request_id: RequestId,
}

impl<S: Store> Clone for Call<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            caller: self.caller.clone(),
            request_id: self.request_id.clone(),
        }
    }
}

impl<S: Store> Call<S> {
    /// The kind of ids that this deployment uses.
    pub fn id_kind(&self) -> IdKind {
        self.service.id_kind()
    }

    /// The token of a write: what the request carried, and what the write did.
    pub fn token_after(&self, Fresh(seen): &Fresh, written: Position) -> String {
        self.service.token_after(seen, written)
    }
}

impl<S: Store> FromRequestParts<Shared<S>> for Call<S> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> Answered<Self> {
        call(parts).cloned().map_err(Failure)
    }
}

fn call<S: Store>(parts: &Parts) -> Result<&Call<S>> {
    // Only a route that everybody may call has none, and such a route asks for none.
    parts.extensions.get().ok_or(Error::Unauthenticated { detail: "this route has no caller" })
}

/// The value of a header that may be there once.
pub fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Error::InvalidRequest { detail: format!("the header {name} is given more than once") });
    }
    let not_text = |_| Error::InvalidRequest { detail: format!("the header {name} is not plain text") };
    value.to_str().map(Some).map_err(not_text)
}

/// The ids in the path, in its order.
pub struct Ids<const N: usize>(pub [Id; N]);

impl<const N: usize, S: Store> FromRequestParts<Shared<S>> for Ids<N> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> Answered<Self> {
        let kind = call::<S>(parts)?.id_kind();
        Ok(Self(path_ids(parts, shared, |text| kind.parse(text)).await?))
    }
}

/// The comment that the path names.
pub struct NamedComment(pub CommentId);

impl<S: Store> FromRequestParts<Shared<S>> for NamedComment {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> Answered<Self> {
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

/// Who acts.
pub struct Actor(pub Id);

impl<S: Store> FromRequestParts<Shared<S>> for Actor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> Answered<Self> {
        let NamedActor(named) = NamedActor::from_request_parts(parts, shared).await?;
        Ok(Self(call::<S>(parts)?.caller.actor(named)?))
    }
}

/// Who is named as the actor, if anybody is.
pub struct NamedActor(pub Option<Id>);

impl<S: Store> FromRequestParts<Shared<S>> for NamedActor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> Answered<Self> {
        let kind = call::<S>(parts)?.id_kind();
        Ok(Self(header(&parts.headers, &ACTOR)?.map(|text| kind.parse(text)).transpose()?))
    }
}

/// Who reads comments: an end user is itself, a service may name for whom it asks, and then sees what that user does.
/// Moderators see more.
pub struct Viewing(pub Viewer);

impl<S: Store> FromRequestParts<Shared<S>> for Viewing {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> Answered<Self> {
        let NamedActor(named) = NamedActor::from_request_parts(parts, shared).await?;
        let caller = &call::<S>(parts)?.caller;
        let user = match caller.actor(named) {
            Err(Error::ActorRequired) => None,
            actor => Some(actor?),
        };
        // A service that asks for somebody must not show what that user may not see.
        let in_own_right = named.is_none() || matches!(caller.identity, Identity::User(_));
        Ok(Self(Viewer { user, is_moderator: in_own_right && caller.holds(Scope::Moderate) }))
    }
}

/// Who moderates, as far as it is known: an end user is itself, a service may name a user, and is known by its key otherwise.
pub struct Moderating(pub Option<Moderator>);

impl<S: Store> FromRequestParts<Shared<S>> for Moderating {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared<S>) -> Answered<Self> {
        let NamedActor(named) = NamedActor::from_request_parts(parts, shared).await?;
        let caller = &call::<S>(parts)?.caller;
        Ok(Self(match (caller.actor(named), &caller.identity) {
            (Ok(user), _) => Some(Moderator::User(user)),
            (Err(Error::ActorRequired), Identity::Service(key)) => Some(Moderator::Service(Arc::clone(key))),
            (Err(Error::ActorRequired), _) => None,
            (Err(error), _) => return Err(Failure(error)),
        }))
    }
}

/// What the client has seen, by its token; nothing without one. A read shows at least that, and the token of a write covers it.
pub struct Fresh(pub Frontier);

impl<S: Store> FromRequestParts<Shared<S>> for Fresh {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> Answered<Self> {
        let seen = header(&parts.headers, &TOKEN)?.map(|token| call::<S>(parts)?.service.frontier(token));
        Ok(Self(seen.transpose()?.unwrap_or_default()))
    }
}

/// What the client calls its request, so that it can be repeated.
pub struct IdempotencyKey(pub Option<Arc<str>>);

impl<S: Store> FromRequestParts<Shared<S>> for IdempotencyKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared<S>) -> Answered<Self> {
        Ok(Self(header(&parts.headers, &IDEMPOTENCY_KEY)?.map(Arc::from)))
    }
}

/// A body of JSON, not parsed yet.
pub struct JsonBody(pub Bytes);

impl<S: Store> FromRequest<Shared<S>> for JsonBody {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Shared<S>) -> Answered<Self> {
        if !is_json(request.headers()) {
            return Err(Failure(Error::UnsupportedMediaType { expected: "application/json" }));
        }
        Ok(Self(read(request.into_body(), shared.settings.body_bytes_max).await?))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(text)) = header(headers, &axum::http::header::CONTENT_TYPE) else { return false };
    let media_type = text.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
}

/// A body that says nothing: none, or an empty JSON object. Fields that nobody reads are refused here as elsewhere.
pub struct NoBody;

impl<S: Store> FromRequest<Shared<S>> for NoBody {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Shared<S>) -> Answered<Self> {
        if request.body().is_end_stream() {
            return Ok(Self);
        }
        let body = read(request.into_body(), shared.settings.body_bytes_max).await?;
        let blank = body.iter().all(u8::is_ascii_whitespace);
        if blank || serde_json::from_slice(&body).is_ok_and(|fields: serde_json::Map<_, _>| fields.is_empty())
        {
            return Ok(Self);
        }
        Err(Failure(Error::InvalidRequest { detail: "this call takes no body".to_owned() }))
    }
}

/// Reads a whole body, if it is not too large.
async fn read(body: Body, max: usize) -> Result<Bytes> {
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
