//! The OpenAPI document: the descriptions beside the routes, the schemas of `kinfolk-api`, and what follows from how a route is
//! registered.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use kinfolk_api::schema::{IdInput, UUID_PATTERN};
use kinfolk_api::{Id, Problem};
use kinfolk_core::{ErrorCode, IdKind};
use serde_json::json;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, Response,
    ResponseBuilder, SecurityRequirement,
};
use utoipa::{PartialSchema, ToSchema};

use super::Store;
use super::endpoint::{Admission, Endpoint, TokenUse};
use crate::service::{Capability, Service};

const BEARER: &str = "bearer";
/// Names the capability that an operation needs.
const CAPABILITY: &str = "x-capability";
/// Marks an operation whose capability this deployment lacks.
const NOT_AVAILABLE: &str = "x-not-available";

/// The refusals that any route may respond with.
const ANY: &[ErrorCode] = &[
    ErrorCode::InvalidRequest,
    ErrorCode::Forbidden,
    ErrorCode::Internal,
    ErrorCode::Corrupt,
    ErrorCode::Loading,
    ErrorCode::Closed,
    ErrorCode::RequestTimeout,
    ErrorCode::TimedOut,
];
const OF_CALLERS: &[ErrorCode] =
    &[ErrorCode::Unauthenticated, ErrorCode::RateLimited, ErrorCode::Overloaded, ErrorCode::Unavailable];
const OF_ACTORS: &[ErrorCode] = &[ErrorCode::ActorRequired];
const OF_WRITES: &[ErrorCode] =
    &[ErrorCode::TooLarge, ErrorCode::Overloaded, ErrorCode::StorageFull, ErrorCode::ReadOnly];
const OF_TOKENS: &[ErrorCode] = &[ErrorCode::InvalidToken];
const OF_FRESH_READS: &[ErrorCode] = &[ErrorCode::InvalidToken, ErrorCode::NotYetVisible];
const OF_PATHS: &[ErrorCode] = &[ErrorCode::InvalidId];

/// The headers of every page, and of every response to a write.
const PAGE_HEADERS: &[(&str, &str)] = &[("Link", "The next page, as rel=\"next\"")];
const WRITE_HEADERS: &[(&str, &str)] = &[
    (
        "Kinfolk-Token",
        "A read with this token sees the write, and everything that the token of the request covers",
    ),
    ("Kinfolk-Changed", "Whether the write changed anything: true or false"),
];

/// The document without any route.
pub(crate) fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Kinfolk")
        .description(Some("A social graph service: edges, feeds and comments"))
        .version(env!("CARGO_PKG_VERSION"));
    let mut api = OpenApiBuilder::new().info(info).build();
    let components = api.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into(), problem_schema());
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key or a JWT"));
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme.build()));
    api
}

fn problem_schema() -> RefOr<Schema> {
    let mut schema = Problem::schema();
    if let RefOr::T(Schema::Object(problem)) = &mut schema {
        let names: Vec<_> = ErrorCode::ALL.into_iter().map(ErrorCode::name).collect();
        let codes = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some(names));
        problem.properties.insert("code".to_owned(), codes.into());
    }
    schema
}

/// Adds to the routes of a path what follows from their endpoint.
pub(crate) fn describe(item: &mut PathItem, endpoint: Endpoint) {
    for operation in operations(item) {
        let parameters = operation.parameters.get_or_insert_default();
        let has_ids = parameters.iter().any(|parameter| {
            matches!(parameter, RefOr::T(Parameter { parameter_in: ParameterIn::Path, .. }))
        });
        let is_paged = parameters
            .iter()
            .any(|parameter| matches!(parameter, RefOr::T(Parameter { name, .. }) if name == "cursor"));
        if endpoint.acts() {
            parameters.push(actor().into());
        }
        if let Some(token) = token(endpoint.token) {
            parameters.push(token.into());
        }
        if is_paged {
            add_headers(operation, PAGE_HEADERS);
        }
        if endpoint.changes {
            add_headers(operation, WRITE_HEADERS);
        }
        operation.extensions = Some(ExtensionsBuilder::new().add("x-audience", endpoint.audience()).build());
        if let Some(scope) = endpoint.admission.scope() {
            operation.extensions.get_or_insert_default().insert("x-scope".to_owned(), scope.name().into());
            operation.security = Some(vec![SecurityRequirement::new(BEARER, [] as [&str; 0])]);
        }
        if let Some(capability) = endpoint.capability {
            let extensions = operation.extensions.get_or_insert_default();
            extensions.insert(CAPABILITY.to_owned(), capability.name().into());
        }
        let mut codes = [ANY, endpoint.refusals].concat();
        codes.extend(has_ids.then_some(OF_PATHS).into_iter().flatten());
        codes.extend(endpoint.acts().then_some(OF_ACTORS).into_iter().flatten());
        codes.extend(endpoint.changes.then_some(OF_WRITES).into_iter().flatten());
        codes.extend(match endpoint.token {
            TokenUse::Ignored => &[],
            TokenUse::Awaited => OF_FRESH_READS,
            TokenUse::Joined => OF_TOKENS,
        });
        let has_caller = endpoint.admission != Admission::Everybody;
        codes.extend(has_caller.then_some(OF_CALLERS).into_iter().flatten());
        operation.responses.responses.extend(refusals(&codes));
    }
}

/// Adds headers to the responses that a route documents itself.
fn add_headers(operation: &mut Operation, headers: &[(&str, &str)]) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        response.headers.extend(headers.iter().map(|&(name, description)| {
            (name.to_owned(), HeaderBuilder::new().description(Some(description)).build().into())
        }));
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete].into_iter().flatten()
}

fn header_parameter(name: &str, description: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
}

fn actor() -> Parameter {
    header_parameter("Kinfolk-Actor", "Who acts. Needed unless the caller is an end user, who acts as itself")
        .schema(Some(Ref::from_schema_name(Id::name())))
        .build()
}

fn token(token: TokenUse) -> Option<Parameter> {
    let description = match token {
        TokenUse::Ignored => return None,
        TokenUse::Awaited => "The response is at least as fresh as the write that returned this token",
        TokenUse::Joined => "What the client has seen: the token of the response covers this one, too",
    };
    let schema = ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
    Some(header_parameter("Kinfolk-Token", description).schema(Some(schema)).build())
}

/// A response for each status that the codes have.
fn refusals(codes: &[ErrorCode]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes {
        let names = by_status.entry(code.http_status()).or_default();
        if !names.contains(&code.name()) {
            names.push(code.name());
        }
    }
    by_status
        .into_iter()
        .map(|(status, names)| (status.to_string(), refusal(status, &names).into()))
        .collect()
}

fn refusal(status: u16, codes: &[&str]) -> Response {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    let mut response = ResponseBuilder::new()
        .description(format!("Refused or failed: {}", codes.join(", ")))
        .content(Problem::MEDIA_TYPE, problem)
        .extensions(Some(ExtensionsBuilder::new().add("x-codes", json!(codes)).build()));
    if status == 401 {
        response = response.header("WWW-Authenticate", HeaderBuilder::new().build());
    }
    if status == 429 {
        let names = ["Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
        response = names
            .iter()
            .fold(response, |response, name| response.header(*name, HeaderBuilder::new().build()));
    }
    response.build()
}

/// The document as it is served. It waits for the store, which knows the kind of ids and what the profile has.
pub(crate) struct Document {
    api: OpenApi,
    text: OnceLock<Bytes>,
}

impl Document {
    /// With the routes of `api`.
    pub(crate) fn new(api: OpenApi) -> Self {
        Self { api, text: OnceLock::new() }
    }

    /// The document, serialised once and shared by all responses.
    pub(crate) fn text<S: Store>(&self, service: &Service<S>) -> Bytes {
        let make = || {
            let kind = service.id_kind();
            let mut api = self.api.clone();
            let components = api.components.get_or_insert_default();
            components.schemas.insert(Id::name().into(), id_schema(kind).into());
            components.schemas.insert(IdInput::name().into(), id_input_schema(kind));
            if service.access.is_open() {
                components.security_schemes.clear();
                let all = api.paths.paths.values_mut().flat_map(operations);
                all.for_each(|operation| operation.security = None);
            }
            let missing = Capability::ALL.iter().copied().filter(|&capability| !service.has(capability));
            missing.for_each(|capability| mark_missing(&mut api, capability));
            serde_json::to_vec(&api).unwrap_or_default().into()
        };
        self.text.get_or_init(make).clone()
    }
}

/// Says of all operations that need a capability that they are not available. Parameters, bodies and other responses stay, so
/// that clients that are generated from the document are the same for every profile.
fn mark_missing(api: &mut OpenApi, capability: Capability) {
    let name = capability.name();
    if let Some(description) = &mut api.info.description {
        let note =
            format!(". This deployment has no {name}: operations with x-capability {name} respond with 501");
        description.push_str(&note);
    }
    for operation in api.paths.paths.values_mut().flat_map(operations) {
        let extensions = operation.extensions.get_or_insert_default();
        if extensions.get(CAPABILITY).is_some_and(|needed| needed == name) {
            extensions.insert(NOT_AVAILABLE.to_owned(), true.into());
            operation.responses.responses.extend(refusals(&[ErrorCode::NotAvailable]));
        }
    }
}

fn id_schema(kind: IdKind) -> Schema {
    let (pattern, example) = match kind {
        IdKind::Integer => (integer_pattern(), "42"),
        IdKind::Uuid => (UUID_PATTERN.to_owned(), "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"),
    };
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .description(Some("An id: of a user or a post"))
        .pattern(Some(pattern))
        .examples([json!(example)])
        .into()
}

fn id_input_schema(kind: IdKind) -> RefOr<Schema> {
    let text = Ref::from_schema_name(Id::name());
    if kind == IdKind::Uuid {
        return text.into();
    }
    let number = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(0_i64))
        .maximum(Some(i64::MAX));
    AnyOfBuilder::new().item(text).item(number).into()
}

/// Matches the decimal numbers up to 2^63 - 1 and no others: up to 18 digits, or 19 of which the first that differs
/// from those of 2^63 - 1 is lower.
fn integer_pattern() -> String {
    let largest = i64::MAX.to_string();
    let mut choices = vec!["[0-9]{1,18}".to_owned()];
    for (at, digit) in largest.char_indices() {
        let lowest = if at == 0 { '1' } else { '0' };
        let Some(below) = digit.to_digit(10).and_then(|digit| digit.checked_sub(1)) else { continue };
        if below < lowest.to_digit(10).unwrap_or_default() {
            continue;
        }
        choices.push(format!("{}[{lowest}-{below}][0-9]{{{}}}", &largest[..at], largest.len() - at - 1));
    }
    choices.push(largest);
    format!("^0*({})$", choices.join("|"))
}
