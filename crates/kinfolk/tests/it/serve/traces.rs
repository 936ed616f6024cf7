//! Traces as a collector gets them: spans of requests, what is known of them, whose children they are, and the layers below them.

use serde_json::json;

use super::collector::{Collected, Collector};
use super::running::Running;
use crate::support::Sandbox;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// Asks a server that sends so large a part of its traces here, and ends it: the end sends what is left.
fn traced(sample: &str, ask: impl FnOnce(&Running)) -> Collector {
    let (sandbox, collector) = (Sandbox::new(), Collector::start());
    let server = Running::start(&sandbox, &collector.settings(sample));
    ask(&server);
    assert_eq!(server.end("TERM").0, 0);
    collector
}

#[test]
fn a_request_becomes_a_span_named_after_its_operation() {
    let collector = traced("1", |server| {
        let headers = [("X-Request-Id", "my-request")];
        assert_eq!(server.ask("GET", "/v1/users/1/counts", None, &headers, None).status, 200);
    });
    for (line, service) in collector.senders() {
        assert_eq!((line.as_str(), service.as_str()), ("POST /v1/traces HTTP/1.1", "kinfolk"));
    }
    let span = collector.span("counts");
    assert_eq!((span.parent.as_str(), span.is_server, span.is_error), ("", true, false));
    assert_eq!((span.trace.len(), span.id.len()), (32, 16));
    assert!(span.start_nanos <= span.end_nanos, "{span:?}");
    for (name, value) in [
        ("protocol", "rest"),
        ("http.request.method", "GET"),
        ("url.path", "/v1/users/1/counts"),
        ("http.response.status_code", "200"),
        ("request_id", "my-request"),
    ] {
        assert_eq!(span.attribute(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(span.attribute("error.type"), None);
    assert_eq!(collector.spans().len(), 1, "{:?}", collector.spans());
}

#[test]
fn refusals_say_why_and_are_no_errors_of_the_server() {
    let collector = traced("1", |server| {
        assert_eq!(server.ask("POST", "/v1/users/1/follow", Some("1"), &[], None).status, 422);
        assert_eq!(server.get("/v1/nothing").status, 404);
    });
    let refused = collector.span("follow");
    assert_eq!(refused.attribute("error.type").as_deref(), Some("self_follow"));
    assert_eq!(refused.attribute("http.response.status_code").as_deref(), Some("422"));
    assert!(!refused.is_error);
    let nowhere = collector.span("request");
    assert_eq!(nowhere.attribute("error.type").as_deref(), Some("not_found"));
}

#[test]
fn a_caller_that_records_its_trace_is_the_parent() {
    // Of requests without a parent none is sampled here.
    let collector = traced("0", |server| {
        let get = |headers: &[(&str, &str)], user: u32| {
            let path = format!("/v1/users/{user}/counts");
            assert_eq!(server.ask("GET", &path, None, headers, None).status, 200);
        };
        get(&[], 1);
        get(&[("traceparent", &parent("01")), ("tracestate", "vendor=value,other=1")], 2);
        get(&[("traceparent", &parent("00"))], 3);
        get(&[("traceparent", &parent("03")), ("tracestate", "mal formed")], 4);
        get(&[("traceparent", &parent("1"))], 5);
        get(&[("traceparent", &parent("01").to_uppercase())], 6);
        get(&[("traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01")], 7);
    });
    let mut spans = collector.spans();
    spans.sort_by_key(|span| span.start_nanos);
    let told: Vec<_> = spans
        .iter()
        .map(|span| (span.attribute("url.path").unwrap(), span.state.as_str(), span.name.as_str()))
        .collect();
    let path = |user: u32| format!("/v1/users/{user}/counts");
    assert_eq!(told, [(path(2), "vendor=value,other=1", "counts"), (path(4), "", "counts")]);
    for span in &spans {
        assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, CALLER));
        assert!(span.is_server && span.id != CALLER);
    }
}

#[test]
fn a_caller_that_does_not_record_its_trace_is_respected() {
    let collector = traced("1", |server| {
        let unsampled = [("traceparent", parent("00"))];
        let unsampled = unsampled.each_ref().map(|(name, value)| (*name, value.as_str()));
        assert_eq!(server.ask("GET", "/v1/users/1/counts", None, &unsampled, None).status, 200);
        assert_eq!(server.ask("POST", "/v1/users/3/follow", Some("1"), &unsampled, None).status, 204);
        // What is malformed is as good as none.
        let malformed = [("traceparent", "00-x-y-01"), ("tracestate", "vendor=value")];
        assert_eq!(server.ask("GET", "/v1/users/2/counts", None, &malformed, None).status, 200);
    });
    let span = collector.span("counts");
    assert_eq!(span.attribute("url.path").as_deref(), Some("/v1/users/2/counts"));
    assert_eq!((span.parent.as_str(), span.state.as_str()), ("", ""));
    assert_ne!(span.trace, TRACE);
    assert_eq!(collector.spans().len(), 1, "neither the others nor their layers");
}

/// The layers below a request, by their names.
fn layers(collector: &Collector, request: &Collected) -> Vec<Collected> {
    let mut below = collector.spans();
    below.retain(|span| span.parent == request.id);
    below.sort_by_key(|span| span.start_nanos);
    for layer in &below {
        assert_eq!(layer.trace, request.trace);
        assert!(!layer.is_server);
        assert!(layer.start_nanos <= layer.end_nanos, "{layer:?}");
        // They are placed by two clocks, which may differ a little.
        let a_little = 1_000_000_000;
        assert!(layer.start_nanos + a_little >= request.start_nanos, "{layer:?} in {request:?}");
        assert!(layer.end_nanos <= request.end_nanos + a_little, "{layer:?} in {request:?}");
    }
    below
}

#[test]
fn layers_of_the_store_are_children_of_their_request() {
    let collector = traced("0", |server| {
        let sampled = parent("01");
        let sampled = [("traceparent", sampled.as_str())];
        let ask = |method: &str, path: &str, actor: Option<&str>, body: Option<&str>| {
            let answer = server.ask(method, path, actor, &sampled, body);
            assert!(answer.status < 300, "{path}: {answer:?}");
        };
        ask("POST", "/v1/users/2/follow", Some("1"), None);
        ask("GET", "/v1/users/1/following", None, None);
        let pairs: Vec<[u32; 2]> = (0..100).map(|user| [1, user]).collect();
        ask("POST", "/v1/check", None, Some(&json!({ "pairs": pairs }).to_string()));
        ask("GET", "/v1/users/1/following/9", None, None);
        // Nobody asked for these.
        assert_eq!(server.ask("POST", "/v1/users/3/follow", Some("1"), &[], None).status, 204);
        assert!(server.redis("FOLLOW 5 6").starts_with(['$', '+']), "no span, and nothing below it");
    });
    let names = |request: &str| -> Vec<String> {
        layers(&collector, &collector.span(request)).into_iter().map(|layer| layer.name).collect()
    };
    assert_eq!(names("follow"), ["writer_queue", "log_sync"]);
    assert_eq!(names("following"), ["rows"]);
    assert_eq!(names("check_many"), ["index"]);
    assert_eq!(names("check"), [] as [&str; 0], "a single check is not measured");
    assert_eq!(collector.spans().len(), 4 + 4);
}
