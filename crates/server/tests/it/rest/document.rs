//! The OpenAPI document and the server agree: on routes, methods and error codes.

use std::collections::{BTreeMap, BTreeSet};

use kinfolk_core::{ErrorCode, IdKind};
use kinfolk_server::Access;
use kinfolk_server::rest::RestSettings;
use serde_json::Value;

use super::super::backing::HAS_CONTENT;
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
    ("get", "/v1/posts/{id}/comments/tree"),
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
                assert!(status < 400, "{method} {path}: {status}");
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

/// Every object in a document, with the path to it.
fn objects<'a>(value: &'a Value, path: &str, found: &mut Vec<(String, &'a serde_json::Map<String, Value>)>) {
    match value {
        Value::Object(fields) => {
            found.push((path.to_owned(), fields));
            fields.iter().for_each(|(name, value)| objects(value, &format!("{path}/{name}"), found));
        }
        Value::Array(values) => values.iter().for_each(|value| objects(value, path, found)),
        _ => {}
    }
}

/// Generators make awkward types of alternatives, and some make none.
#[test]
fn schemas_have_no_alternatives() {
    let document = Server::start().read("/openapi.json");
    let mut found = Vec::new();
    objects(&document, "", &mut found);
    for (path, fields) in found {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            assert!(!fields.contains_key(keyword), "{path}: {keyword}");
        }
        let is_schema = !path.ends_with("/properties");
        assert!(!is_schema || !fields.get("type").is_some_and(Value::is_array), "{path}");
    }
}

/// Generators derive names from those of schemas: a constructor `NewComment` of `Comment`, a `NullableComment`, a `CommentsRequest` of
/// the operation `comments`.
#[test]
fn names_stay_apart_in_generated_code() {
    let document = Server::start().read("/openapi.json");
    let schemas: BTreeSet<&str> =
        document["components"]["schemas"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(schemas.contains("CommentDraft") && schemas.contains("PostDraft"), "{schemas:?}");
    for schema in &schemas {
        for prefix in ["New", "Nullable"] {
            let is_derived = schema.strip_prefix(prefix).is_some_and(|of| schemas.contains(of));
            assert!(!is_derived, "{schema}");
        }
        assert!(!schema.ends_with("WithDefaults"), "{schema}");
    }
    let reserved =
        ["delete", "import", "export", "default", "new", "return", "package", "post", "get", "put"];
    for (.., operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap();
        assert!(!reserved.contains(&name), "{name} is a word of a language, or of HTTP");
        let pascal: String =
            name.split('_').map(|word| format!("{}{}", word[..1].to_uppercase(), &word[1..])).collect();
        for suffix in ["Request", "Response", "Params", "Body"] {
            assert!(!schemas.contains(format!("{pascal}{suffix}").as_str()), "{pascal}{suffix}");
        }
    }
}

#[test]
fn credentials_and_the_server_are_documented() {
    let open = Server::start().read("/openapi.json");
    let closed = super::access::Guarded::start(super::access::default_limits()).document;
    for document in [&open, &closed] {
        assert_eq!(document["servers"][0]["url"], "/");
        let scheme = &document["components"]["securitySchemes"]["bearer"];
        assert_eq!((&scheme["type"], &scheme["scheme"]), (&"http".into(), &"bearer".into()));
        let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        for (method, path, operation) in operations(document) {
            assert!(operation["security"].is_array(), "{method} {path}");
            assert!(
                operation["tags"].as_array().unwrap().iter().all(|tag| tags.contains(&tag)),
                "{method} {path}"
            );
        }
    }
    let bearer = serde_json::json!({ "bearer": [] });
    assert_eq!(closed["security"], serde_json::json!([bearer]));
    assert_eq!(open["security"], serde_json::json!([{}, bearer]), "without authentication, it is optional");
    assert_eq!(open["paths"]["/healthz"]["get"]["security"], serde_json::json!([]));
}

/// A client that sends what the document says is the default gets the same as one that sends nothing.
#[test]
fn documented_defaults_are_accepted() {
    let server = Server::start();
    server.post(r#"{"id":"5","author":"1"}"#);
    let document = server.read("/openapi.json");
    let mut count = 0;
    for (method, path, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let defaults: Vec<String> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| {
                let value = parameter["schema"].get("default")?;
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Some(format!("{}={value}", parameter["name"].as_str().unwrap()))
            })
            .collect();
        let is_content = ["post", "feed", "comment"].iter().any(|word| path.contains(word));
        if method != "get"
            || defaults.is_empty()
            || path.contains("{comment}")
            || (is_content && !HAS_CONTENT)
        {
            continue;
        }
        let needed = match path.as_str() {
            "/v1/common" => "id=1&id=2&",
            "/v1/users/{id}/known-followers" => "viewer=1&",
            _ => "",
        };
        let address = ["{id}", "{target}", "{other}"].iter().fold(path, |path, name| path.replace(name, "5"));
        let with = server.read(&format!("{address}?{needed}{}", defaults.join("&")));
        assert_eq!(with["items"], server.read(&format!("{address}?{needed}"))["items"], "{address}");
        count += 1;
    }
    assert!(count >= if HAS_CONTENT { 10 } else { 5 }, "{count}");
}

#[test]
fn lines_and_events_are_documented() {
    let document = Server::start().read("/openapi.json");
    for (path, method, media_type, schema) in [
        ("/v1/admin/import", "post", "application/x-ndjson", "ImportLine"),
        ("/v1/admin/verify", "post", "application/x-ndjson", "VerifyLine"),
        ("/v1/admin/compact", "post", "application/x-ndjson", "CompactLine"),
        ("/v1/admin/suggest", "post", "application/x-ndjson", "SuggestLine"),
        ("/v1/changes/stream", "get", "text/event-stream", "Item"),
    ] {
        let body = &document["paths"][path][method]["responses"]["200"]["content"][media_type]["schema"];
        assert_eq!(body["type"], "string", "{path}");
        assert_eq!(body["contentMediaType"], media_type);
        assert_eq!(body["contentSchema"]["$ref"], format!("#/components/schemas/{schema}"));
        let lines = body["examples"][0].as_str().unwrap().lines();
        for line in
            lines.filter_map(|line| line.strip_prefix("data: ").or(line.starts_with('{').then_some(line)))
        {
            let example: Value = serde_json::from_str(line).unwrap();
            let fields = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
            assert!(example.as_object().unwrap().keys().all(|name| fields.contains_key(name)), "{line}");
        }
    }
}
