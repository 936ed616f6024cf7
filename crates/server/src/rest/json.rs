//! JSON answers, and how ids and times look in them. What an answer says is up to its route.

use std::borrow::Cow;
use std::fmt::Display;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use kinfolk_core::Error;
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::problem::Failure;

/// Matches UUIDs.
pub const UUID_PATTERN: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

/// The media type of answers.
pub const MEDIA_TYPE: &str = "application/json";

/// An answer as JSON.
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => written(text),
            Err(error) => Failure(Error::Storage { detail: error.to_string() }).into_response(),
        }
    }
}

/// An answer that is JSON already.
pub fn written(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// An id or a time, as a string.
pub fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// As [`as_text`], for what may be missing.
pub fn as_optional_text<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// How an id is documented. The document fills in the pattern of the deployment's kind.
pub struct UserId;

impl PartialSchema for UserId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .description(Some("An id: of a user or a post"))
            .into()
    }
}

impl ToSchema for UserId {
    fn name() -> Cow<'static, str> {
        "UserId".into()
    }
}

/// How an id in a body is documented: as a string or, where ids are integers, as a number too.
pub struct GivenUserId;

impl PartialSchema for GivenUserId {
    fn schema() -> RefOr<Schema> {
        UserId::schema()
    }
}

impl ToSchema for GivenUserId {
    fn name() -> Cow<'static, str> {
        "GivenUserId".into()
    }
}

/// How the id of a comment is documented.
pub struct CommentName;

impl PartialSchema for CommentName {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .description(Some("The id of a comment, whatever ids users have: a UUID of version 7"))
            .pattern(Some(UUID_PATTERN))
            .examples([serde_json::json!("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")])
            .into()
    }
}

impl ToSchema for CommentName {
    fn name() -> Cow<'static, str> {
        "CommentId".into()
    }
}

/// How a time is documented.
pub struct Moment;

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A time in UTC, RFC 3339 with milliseconds"))
            .examples([serde_json::json!("2026-11-15T08:00:00.123Z")])
            .into()
    }
}

impl ToSchema for Moment {
    fn name() -> Cow<'static, str> {
        "Moment".into()
    }
}
