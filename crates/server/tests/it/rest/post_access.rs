//! Who may post for whom, and what it costs.

use kinfolk_server::{LimitSettings, Rate, Scope};

use super::access::{Guarded, default_limits, token};

#[test]
fn users_post_as_themselves_and_services_for_anybody() {
    let guarded = Guarded::start(default_limits());
    let (user, service) =
        (format!("Bearer {}", token("1", "")), format!("Bearer {}", guarded.key([Scope::Write])));
    let post = |credential: &str, actor: Option<&str>, body: &str| {
        let mut headers = vec![("authorization", credential)];
        headers.extend(actor.map(|actor| ("kinfolk-actor", actor)));
        let answer = guarded.server.post_with(&headers, body);
        if answer.status == 201 {
            answer.json()["author"].as_str().unwrap().to_owned()
        } else {
            answer.problem()
        }
    };
    assert_eq!(post(&user, None, "{}"), "1");
    assert_eq!(post(&user, Some("1"), r#"{"author":"1"}"#), "1");
    assert_eq!(post(&user, None, r#"{"author":"2"}"#), "forbidden");
    assert_eq!(post(&user, Some("2"), "{}"), "forbidden");
    assert_eq!(post(&user, Some("2"), r#"{"author":"1"}"#), "forbidden");
    assert_eq!(post(&service, None, "{}"), "actor_required");
    assert_eq!(post(&service, Some("5"), "{}"), "5");
    assert_eq!(post(&service, None, r#"{"author":"6"}"#), "6");
    assert_eq!(post(&service, Some("5"), r#"{"author":"6"}"#), "6");

    let delete = |credential: &str, actor: Option<&str>| {
        let mut headers = vec![("authorization", credential)];
        headers.extend(actor.map(|actor| ("kinfolk-actor", actor)));
        guarded.server.request("DELETE", "/v1/posts/31", &headers, b"").status
    };
    guarded.post("2", "31");
    assert_eq!([delete(&user, None), delete(&service, Some("1")), delete(&service, None)], [403, 403, 400]);
    assert_eq!([delete(&service, Some("2")), delete(&service, Some("2"))], [204, 204]);
    assert_eq!([delete(&user, None), delete(&service, Some("1"))], [403, 403]);
}

#[test]
fn posts_are_changes_of_their_author() {
    let limits = LimitSettings { changes: Some(Rate::per_hour(1).with_burst(5)), ..default_limits() };
    let guarded = Guarded::start(limits);
    // Three were registered at the start.
    let headers = [("authorization", &*format!("Bearer {}", token("1", "")))];
    let post = || guarded.server.post_with(&headers, "{}").status;
    assert_eq!([post(), post(), post()], [201, 201, 429]);
    assert_eq!(guarded.server.request("DELETE", "/v1/posts/21", &headers, b"").problem(), "rate_limited");
    guarded.post("2", "31");
}
