//! The OpenAPI document: the descriptions beside the routes, the schemas of `kinfolk-api`, and what follows from how a route is
//! registered.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use kinfolk_api::schema::UUID_PATTERN;
use kinfolk_api::{Id, Problem};
use kinfolk_core::{ErrorCode, IdKind};
use serde_json::json;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::server::ServerBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
    Required, Response, ResponseBuilder, SecurityRequirement,
};
use utoipa::{PartialSchema, ToSchema};

use super::endpoint::{Admission, Endpoint, TokenUse};
use super::entity_tag::EntityTag;
use super::{Store, json};
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

/// What the tags of operations stand for.
const TAGS: &[(&str, &str)] = &[
    ("graph", "Edges: following, lists, checks, counts and overlaps"),
    ("suggestions", "Users that a user may know"),
    ("feeds", "Posts and home feeds"),
    ("comments", "Comments on posts, and their moderation"),
    ("changes", "The change log, as pages and as a stream"),
    ("admin", "Import, export, verification, backup and other jobs of operators"),
    ("system", "Health, readiness, metrics and this document"),
];

/// The type of a body that is a file.
const FILE: &str = "application/octet-stream";

/// The document without any route.
pub(crate) fn head() -> OpenApi {
    let license = LicenseBuilder::new().name("Apache License 2.0").identifier(Some("Apache-2.0"));
    let info = InfoBuilder::new()
        .title("Kinfolk")
        .description(Some("A social graph service: edges, feeds and comments"))
        .license(Some(license.build()))
        .version(env!("CARGO_PKG_VERSION"));
    // Relative to where the document is served, which the server itself does not know behind a proxy.
    let server = ServerBuilder::new().url("/").description(Some("The server that serves this document"));
    let tags = TAGS
        .iter()
        .map(|(name, description)| TagBuilder::new().name(*name).description(Some(*description)).build());
    let mut api = OpenApiBuilder::new().info(info).servers(Some([server.build()])).tags(Some(tags)).build();
    api.security = Some(vec![bearer()]);
    let components = api.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into(), problem_schema());
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key or a JWT"));
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme.build()));
    api
}

/// The requirement of a credential.
fn bearer() -> SecurityRequirement {
    SecurityRequirement::new(BEARER, [] as [&str; 0])
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
        parameters.iter_mut().for_each(never_null);
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
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && body.content.contains_key(FILE)
        {
            // A file may be empty.
            body.required = Some(Required::False);
        }
        operation.extensions = Some(ExtensionsBuilder::new().add("x-audience", endpoint.audience()).build());
        let scope = endpoint.admission.scope();
        operation.security = Some(scope.iter().map(|_| bearer()).collect());
        if let Some(scope) = scope {
            operation.extensions.get_or_insert_default().insert("x-scope".to_owned(), scope.name().into());
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

/// A parameter that may be missing is never null, which has no form in a header or in an address.
fn never_null(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(Parameter { schema: Some(schema), .. }) = parameter else { return };
    let is_null = |schema: &RefOr<Schema>| matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::new(Type::Null));
    match schema {
        RefOr::T(Schema::OneOf(either)) => {
            if let Some(value) = either.items.iter().find(|item| !is_null(item)) {
                *schema = value.clone();
            }
        }
        RefOr::T(Schema::Object(object)) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|of| *of != Type::Null);
            }
            if let SchemaType::Array(types) = &object.schema_type
                && let [value] = &types[..]
            {
                object.schema_type = SchemaType::new(value.clone());
            }
        }
        _ => {}
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
    text: OnceLock<(Bytes, EntityTag)>,
}

impl Document {
    /// With the routes of `api`.
    pub(crate) fn new(api: OpenApi) -> Self {
        Self { api, text: OnceLock::new() }
    }

    /// The document, serialised once and shared by all responses, and its entity tag.
    pub(crate) fn text<S: Store>(&self, service: &Service<S>) -> &(Bytes, EntityTag) {
        let make = || {
            let mut api = self.api.clone();
            let components = api.components.get_or_insert_default();
            components.schemas.insert(Id::name().into(), id_schema(service.id_kind()).into());
            if service.access.is_open() {
                make_security_optional(&mut api);
            }
            let missing = Capability::ALL.iter().copied().filter(|&capability| !service.has(capability));
            missing.for_each(|capability| mark_missing(&mut api, capability));
            // As a value its fields are in order, so that the document is the same in every process.
            let text = json::text(&serde_json::to_value(&api).unwrap_or_default());
            let tag = EntityTag::of(&text);
            (text, tag)
        };
        self.text.get_or_init(make)
    }
}

/// Says that credentials are accepted and not needed, so that clients that are generated from the document can send them elsewhere.
fn make_security_optional(api: &mut OpenApi) {
    let of_all = api.security.iter_mut();
    let of_each =
        api.paths.paths.values_mut().flat_map(operations).filter_map(|operation| operation.security.as_mut());
    for required in of_all.chain(of_each).filter(|required| !required.is_empty()) {
        required.insert(0, SecurityRequirement::default());
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
    let (pattern, example, description) = match kind {
        IdKind::Integer => (
            integer_pattern(),
            "42",
            "An id: of a user or a post. Bodies of requests may have it as a JSON number, too",
        ),
        IdKind::Uuid => {
            (UUID_PATTERN.to_owned(), "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "An id: of a user or a post")
        }
    };
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .description(Some(description))
        .pattern(Some(pattern))
        .examples([json!(example)])
        .into()
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
