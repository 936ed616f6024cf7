//! The OpenAPI document and the server agree: on routes, methods and error codes.

use std::collections::{BTreeMap, BTreeSet};

use kinfolk_core::{ErrorCode, IdKind};
use kinfolk_server::Access;
use kinfolk_server::rest::RestSettings;
use serde_json::Value;

use super::server::Server;

/// What the contract promises for the engine as it is, written down once more on purpose.
const CONTRACT: &[(&str, &str)] = &[
    ("post", "/v1/users/{id}/follow"),
    ("delete", "/v1/users/{id}/follow"),
    ("delete", "/v1/users/{id}/followers/{follower}"),
    ("get", "/v1/users/{id}/following"),
    ("get", "/v1/users/{id}/followers"),
    ("get", "/v1/users/{id}/friends"),
    ("get", "/v1/users/{id}/following/{target}"),
    ("post", "/v1/check"),
    ("get", "/v1/users/{id}/relationships"),
    ("get", "/v1/users/{id}/counts"),
    ("get", "/v1/counts"),
    ("get", "/v1/users/{id}/common/{other}"),
    ("get", "/v1/common"),
    ("get", "/v1/users/{id}/known-followers"),
    ("get", "/v1/users/{id}/suggestions"),
    ("delete", "/v1/users/{id}/suggestions/{target}"),
    ("post", "/v1/posts"),
    ("get", "/v1/posts/{id}"),
    ("delete", "/v1/posts/{id}"),
    ("get", "/v1/users/{id}/posts"),
    ("get", "/v1/users/{id}/feed"),
    ("post", "/v1/posts/{id}/comments"),
    ("get", "/v1/posts/{id}/comments"),
    ("put", "/v1/posts/{id}/comments/lock"),
    ("delete", "/v1/posts/{id}/comments/lock"),
    ("get", "/v1/users/{id}/comments"),
    ("get", "/v1/comments/{comment}"),
    ("patch", "/v1/comments/{comment}"),
    ("delete", "/v1/comments/{comment}"),
    ("get", "/v1/comments/{comment}/history"),
    ("post", "/v1/comments/{comment}/remove"),
    ("post", "/v1/comments/{comment}/purge"),
    ("get", "/v1/changes"),
    ("get", "/v1/changes/stream"),
    ("post", "/v1/admin/import"),
    ("get", "/v1/admin/export"),
    ("post", "/v1/admin/verify"),
    ("get", "/v1/admin/backup"),
    ("post", "/v1/admin/compact"),
    ("post", "/v1/admin/suggest"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
];

/// Every documented route: method, path, operation.
pub(super) fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (method.clone(), path.clone(), operation))
    });
    operations.collect()
}

#[test]
fn served_and_documented_routes_are_the_same() {
    let server = Server::start();
    let document = server.read("/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let documented: BTreeSet<(String, String)> =
        operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    let promised = CONTRACT.iter().map(|&(method, path)| (method.to_owned(), path.to_owned())).collect();
    assert_eq!(documented, promised);
    let names: BTreeSet<&str> = operations(&document)
        .iter()
        .map(|(.., operation)| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), CONTRACT.len(), "each operation has a name of its own");

    let paths: BTreeMap<&str, BTreeSet<&str>> =
        documented.iter().fold(BTreeMap::new(), |mut paths, (method, path)| {
            paths.entry(path.as_str()).or_default().insert(method.as_str());
            paths
        });
    for (path, methods) in paths {
        // An id that is none is refused by a route, and by nothing else.
        let named = ["{id}", "{follower}", "{target}", "{other}", "{comment}"];
        let address = named.iter().fold(path.to_owned(), |path, name| path.replace(name, "x"));
        for method in ["get", "post", "put", "patch", "delete"] {
            let answer = server.request(&method.to_uppercase(), &format!("{address}?no=1"), &[], b"");
            let served = answer.status != 404 && answer.status != 405;
            assert_eq!(served, methods.contains(method), "{method} {path}: {answer:?}");
        }
    }
}

#[test]
fn documented_codes_are_those_of_the_table() {
    let server = Server::start();
    let document = server.read("/openapi.json");
    let table: BTreeMap<&str, u16> =
        ErrorCode::ALL.into_iter().map(|code| (code.name(), code.http_status())).collect();
    for (method, path, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let status: u16 = status.parse().unwrap();
            let Some(codes) = response.get("x-codes") else {
                assert!(status < 300, "{method} {path}: {status}");
                continue;
            };
            for code in codes.as_array().unwrap() {
                assert_eq!(table.get(code.as_str().unwrap()), Some(&status), "{method} {path}: {code}");
            }
            assert!(response["content"]["application/problem+json"].is_object());
        }
    }
    let codes =
        document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"].as_array().unwrap();
    assert_eq!(codes.len(), table.len());
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let server = Server::start();
    let document = server.read("/openapi.json");
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
}

#[test]
fn the_pattern_of_ids_follows_the_deployment() {
    let integers = Server::start();
    let pattern = |server: &Server| {
        let schema = &server.read("/openapi.json")["components"]["schemas"]["UserId"];
        schema["pattern"].as_str().unwrap().to_owned()
    };
    assert!(pattern(&integers).contains("9223372036854775807"));
    let uuids = Server::closed(RestSettings::default());
    uuids.open(IdKind::Uuid, Access::open());
    assert!(pattern(&uuids).contains("{8}-"));
}
