//! All routes: registering one puts its guard in front of it and itself into the OpenAPI document, so that neither
//! can be forgotten. Also the response where there is no route.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CONTENT_TYPE, ETAG, LINK, LOCATION, RETRY_AFTER};
use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri, Version};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use kinfolk_core::Error;
use tower::util::option_layer;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::UtoipaMethodRouter;

use super::endpoint::Endpoint;
use super::entity_tag::weaken_compressed;
use super::guard::guard;
use super::origin::Origin;
use super::problem::Failure;
use super::{
    Shared, Store, admin, changes, checks, comments, counts, document, extract, json, lists, overlaps, posts,
    request_id, suggestions, system, writes,
};

/// Smaller responses are sent as they are: compressing them costs more than it saves.
const COMPRESSED_BYTES_MIN: u64 = 4 * 1024;

/// The media types that are compressed, beside JSON. Streams of events are not: each event would wait for more of them.
const TEXTS: [&str; 4] = ["text/plain", "text/html", "text/css", "text/javascript"];

/// Marks a response that is sent as it is. Anybody may ask for it, and compressing costs memory and time each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncompressed;

/// The routes so far. What is shared comes in later, when the document that it holds is complete.
pub(crate) struct Routes<S: Store> {
    /// The document that describes them.
    pub api: OpenApi,
    routes: Vec<Route<S>>,
}

struct Route<S: Store> {
    path: String,
    endpoint: Endpoint,
    methods: MethodRouter<Shared<S>>,
}

impl<S: Store> Routes<S> {
    /// Adds the routes of one path, usually one.
    pub(crate) fn add(mut self, endpoint: Endpoint, routes: UtoipaMethodRouter<Shared<S>>) -> Self {
        let (schemas, mut paths, methods) = routes;
        for item in paths.paths.values_mut() {
            document::describe(item, endpoint);
        }
        self.routes.extend(paths.paths.keys().map(|path| Route {
            path: path.clone(),
            endpoint,
            methods: methods.clone(),
        }));
        for (path, item) in paths.paths {
            match self.api.paths.paths.get_mut(&path) {
                Some(known) => known.merge_operations(item),
                None => drop(self.api.paths.paths.insert(path, item)),
            }
        }
        self.api.components.get_or_insert_default().schemas.extend(schemas);
        self
    }

    /// Adds a route that people use in a browser, and that the document does not describe.
    pub(crate) fn add_page(
        mut self,
        endpoint: Endpoint,
        path: &str,
        methods: MethodRouter<Shared<S>>,
    ) -> Self {
        self.routes.push(Route { path: path.to_owned(), endpoint, methods });
        self
    }
}

/// All routes of the API.
pub(crate) fn all<S: Store>() -> Routes<S> {
    let routes = Routes { api: document::head(), routes: Vec::new() };
    let families = [
        writes::routes,
        lists::routes,
        checks::routes,
        counts::routes,
        overlaps::routes,
        suggestions::routes,
        posts::routes,
        comments::routes,
        changes::routes,
        admin::routes,
    ];
    let routes = families.into_iter().fold(routes, |routes, family| family(routes));
    system::routes(routes)
}

/// The routes about the process itself.
pub(super) fn system_only<S: Store>() -> Routes<S> {
    system::routes(Routes { api: document::head(), routes: Vec::new() })
}

/// The router, with the guards and what is around all routes.
pub(crate) fn finish<S: Store>(routes: Routes<S>, shared: &Shared<S>) -> Router {
    let mut router = Router::new();
    for Route { path, endpoint, methods } in routes.routes {
        let guard = from_fn_with_state((Arc::clone(shared), endpoint), guard::<S>);
        router = router.route(&path, methods.route_layer(guard));
    }
    router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(compression())
        .layer(map_response(weaken_compressed))
        .layer(option_layer(cors(&shared.settings.allowed_origins)))
        .with_state(Arc::clone(shared))
}

async fn not_found(uri: Uri) -> Failure {
    Failure(Error::NotFound { detail: format!("there is nothing at {}", uri.path()) })
}

/// `OPTIONS` asks what there is, which the header `Allow` says; axum adds it to this response too.
async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Failure(Error::MethodNotAllowed).into_response()
}

fn compression() -> CompressionLayer<impl Predicate> {
    let is_text = |_: StatusCode, _: Version, headers: &HeaderMap, extensions: &Extensions| {
        let media_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is_text = media_type == json::MEDIA_TYPE.as_bytes()
            || TEXTS.iter().any(|text| media_type.starts_with(text.as_bytes()));
        is_text && extensions.get::<Uncompressed>().is_none()
    };
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESSED_BYTES_MIN).and(is_text))
}

/// Which web pages may call: those of the allowed origins, and of no other.
fn cors(origins: &[Origin]) -> Option<CorsLayer> {
    let origins: Vec<_> = origins.iter().filter_map(|origin| origin.as_str().parse().ok()).collect();
    let exposed = [extract::TOKEN, extract::CHANGED, request_id::HEADER, ETAG, LINK, LOCATION, RETRY_AFTER];
    let layer = CorsLayer::new()
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed);
    (!origins.is_empty()).then(|| layer.allow_origin(AllowOrigin::list(origins)))
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::ModelStore;

    use super::super::endpoint::Cost;
    use super::*;
    use crate::access::Scope;

    #[test]
    fn every_write_declares_its_actor_and_its_cost() {
        let routes = all::<ModelStore>();
        assert!(routes.routes.len() >= 40, "{}", routes.routes.len());
        for Route { path, endpoint, .. } in &routes.routes {
            let writes = endpoint.admission.scope() == Some(Scope::Write);
            assert_eq!(endpoint.acts(), writes, "{path}");
            assert_eq!(matches!(endpoint.cost, Cost::Change | Cost::Comment), writes, "{path}");
        }
    }
}
