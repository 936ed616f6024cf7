//! Consistency tokens: carried by a client, passed on between clients.

use futures_util::future::join_all;

use crate::scripted::{Scripted, response};
use crate::server::Server;

#[test]
fn a_client_carries_the_token_of_its_last_write() {
    let written = |token: &str| response("204 No Content", &[("kinfolk-token", token)], "");
    let counts = response("200 OK", &[], r#"{"id":"1","following":0,"followers":0}"#);
    let server = Scripted::start(vec![written("a"), counts.clone(), written("b"), counts.clone(), counts]);
    let client = server.client();
    assert_eq!(client.token(), None);
    client.follow(2).unwrap();
    client.counts(1).unwrap();
    client.unfollow(2).unwrap();
    client.separate().counts(1).unwrap();
    client.set_token(Some("c".to_owned()));
    client.counts(1).unwrap();
    let tokens: Vec<_> = server.requests().iter().map(|request| request.header("kinfolk-token")).collect();
    let expected = [None, Some("a"), Some("a"), None, Some("c")].map(|token| token.map(str::to_owned));
    assert_eq!(tokens, expected);
}

#[test]
fn the_token_of_concurrent_writes_covers_all_of_them() {
    let server = Server::start();
    server.run(async |client| {
        let one = client.acting_as(1);
        let writes = join_all((2..40_u64).map(|followee| one.follow(followee))).await;
        assert!(writes.into_iter().all(|written| written.unwrap().changed));
        let reader = client.separate();
        reader.set_token(one.token());
        assert_eq!(reader.counts(1).await.unwrap().following, 38);
    });
}
