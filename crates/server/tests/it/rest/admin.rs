//! Administration through the server: files in and out, and work that tells how far it is.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kinfolk_server::rest::RestSettings;
use serde_json::{Value, json};

use super::client::Answer;
use super::server::Server;
use crate::administration::FILE_BYTES;

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_import_tells_its_progress_and_its_result() {
    let server = Server::start();
    let answer =
        server.request("POST", "/v1/admin/import?format=csv&skip_invalid=true", &[], b"1,2\nbad\n1,3\n");
    let lines = lines(&answer);
    assert_eq!(lines[0], json!({"progress": {"stage": "reading", "done": 1}}));
    assert!(lines.contains(&json!({"progress": {"stage": "loading", "done": 1, "total": 1}})));
    let mut last = lines.last().unwrap().clone();
    assert!(last["result"]["token"].take().as_str().is_some_and(|token| token.len() > 20));
    let result =
        json!({"added": 2, "duplicates": 0, "self_follows": 0, "over_limit": 0, "invalid": 1, "token": null});
    assert_eq!(last, json!({ "result": result }));
}

#[test]
fn a_refused_import_says_why_even_to_a_client_that_sends_first() {
    let server = Server::start();
    let mut file = b"1,2\nbad\n".to_vec();
    file.resize(8 << 20, b'\n');
    let lines = lines(&server.request("POST", "/v1/admin/import", &[], &file));
    let error = &lines.last().unwrap()["error"];
    assert_eq!((&error["code"], &error["status"]), (&json!("invalid_input"), &json!(400)));
    assert_eq!(error["detail"], "line: it is bad");
}

#[test]
fn an_import_that_is_cut_off_ends() {
    let server = Server::start();
    let patience = Instant::now() + Duration::from_secs(30);
    // More than may run at once: those before must have ended for the later ones to be let in.
    for _ in 0..12 {
        loop {
            let mut connection = server.connect();
            connection.begin("POST", "/v1/admin/import", &[("content-length", "1000")]);
            connection.write(b"1,2\n").unwrap();
            if connection.head().unwrap().0 == 200 {
                break;
            }
            assert!(Instant::now() < patience, "jobs without clients go on");
        }
    }
}

#[test]
fn an_import_that_stalls_ends() {
    let server =
        Server::with(RestSettings { read_timeout: Duration::from_millis(50), ..RestSettings::default() });
    let mut connection = server.connect();
    connection.begin("POST", "/v1/admin/import", &[("content-length", "1000")]);
    connection.write(b"1,2\n").unwrap();
    let answer = connection.answer("POST").unwrap();
    let lines = lines(&answer);
    let error = &lines.last().unwrap()["error"];
    assert!(
        error["detail"].as_str().unwrap().contains("the client has sent nothing for too long"),
        "{error}"
    );
}

#[test]
fn work_that_panics_breaks_off() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.begin("POST", "/v1/admin/import", &[("content-length", "6")]);
    connection.write(b"panic\n").unwrap();
    assert_eq!(connection.answer("POST").unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn verify() {
    let server = Server::start();
    let lines = lines(&server.request("POST", "/v1/admin/verify?repair=true", &[], b""));
    assert_eq!(lines[0], json!({"progress": {"stage": "comparing", "done": 0, "total": 9}}));
    assert_eq!(
        lines[1],
        json!({"result": {"edges": 9, "users": 3, "differences": 1, "examples": ["something"], "repaired": true}})
    );
    let refused = server.request("POST", "/v1/admin/verify?repair=1", &[], b"");
    assert_eq!(refused.refusal(), (400, "invalid_request".to_owned()));
}

#[test]
fn compaction_erases_and_merges() {
    let server = Server::start();
    for erased in [0, 1, 2] {
        let lines = lines(&server.request("POST", "/v1/admin/compact", &[], b""));
        assert_eq!(lines[0], json!({"progress": {"stage": "compacting", "done": 0}}));
        assert_eq!(lines[1], json!({"result": {"erased": erased}}));
    }
    let refused = server.request("POST", "/v1/admin/compact?fully=true", &[], b"");
    assert_eq!(refused.refusal(), (400, "invalid_request".to_owned()));
}

#[test]
fn an_export_is_whole_or_broken() {
    let server = Server::start();
    let whole = server.get("/v1/admin/export?format=csv");
    assert_eq!((whole.status, whole.body.len()), (200, FILE_BYTES));
    assert_eq!(whole.header("content-type"), Some("text/csv"));
    assert_eq!(whole.header("content-disposition"), Some("attachment; filename=\"kinfolk-edges.csv\""));

    assert_eq!(server.get("/v1/admin/export?content=edges").body.len(), FILE_BYTES);
    let comments = server.get("/v1/admin/export?content=comments&format=csv.gz");
    assert_eq!((comments.status, comments.text()), (200, "id,body\n"));
    let name = comments.header("content-disposition");
    assert_eq!(name, Some("attachment; filename=\"kinfolk-comments.csv.gz\""));
    let refused = server.get("/v1/admin/export?content=posts");
    assert_eq!(refused.refusal(), (400, "invalid_request".to_owned()));

    let mut connection = server.connect();
    connection.begin("GET", "/v1/admin/export?format=parquet", &[]);
    assert_eq!(connection.answer("GET").unwrap_err().kind(), ErrorKind::UnexpectedEof);

    let failed = server.get("/v1/admin/export?format=csv.zst");
    assert_eq!(failed.refusal(), (500, "internal".to_owned()));
    assert_eq!(server.get("/v1/admin/export?format=xml").refusal(), (400, "invalid_request".to_owned()));
}

#[test]
fn a_client_that_leaves_ends_the_work() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.begin("GET", "/v1/admin/backup", &[]);
    assert_eq!(connection.head().unwrap().0, 200);
    connection.chunk().unwrap();
    assert!(!server.administration.cut_short.load(Ordering::Acquire));
    drop(connection);
    let patience = Instant::now() + Duration::from_secs(30);
    while !server.administration.cut_short.load(Ordering::Acquire) {
        assert!(Instant::now() < patience, "the backup goes on");
        std::thread::yield_now();
    }
}

#[test]
fn only_so_much_work_at_once() {
    let server = Server::start();
    let connections: Vec<_> = (0..4)
        .map(|_| {
            let mut connection = server.connect();
            connection.begin("GET", "/v1/admin/backup", &[]);
            assert_eq!(connection.head().unwrap().0, 200);
            connection
        })
        .collect();
    let refused = server.get("/v1/admin/export");
    assert_eq!(refused.refusal(), (503, "overloaded".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("5"));
    drop(connections);
}
