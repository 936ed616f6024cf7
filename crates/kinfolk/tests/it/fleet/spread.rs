//! Clients of both protocols, spread over two processes that serve while two others project, one of which is killed.

use serde_json::json;

use super::databases::Databases;
use super::processes::eventually;
use super::same_results::Connection;
use crate::serve::running::Running;

const CLIENTS: u64 = 4;
const ROUNDS: u64 = 25;
/// Followed by all, so that its followers come from every shard.
const STAR: u64 = 1_000;

/// One follower's writes, alternating between processes and protocols; each is read on the other process.
fn write_and_read(servers: [&Running; 2], follower: u64) {
    let mut connections = servers.map(|server| Connection::new(&server.resp));
    let actor = follower.to_string();
    let mut token = String::new();
    for round in 0..ROUNDS {
        let (here, there) = ((round % 2) as usize, (1 - round % 2) as usize);
        let followee = if round == 0 { STAR } else { follower * 10_000 + round };
        if round % 4 < 2 {
            let command = format!("FOLLOW {follower} {followee}");
            token = connections[here].send_for_token(&command);
        } else {
            let path = format!("/v1/users/{followee}/follow");
            let seen = [("Kinfolk-Token", token.as_str())];
            let written = servers[here].ask("POST", &path, Some(&actor), &seen, None);
            assert_eq!(written.status, 204, "{written:?}");
            token = written.token.unwrap();
        }
        // The follower side follows as soon as one of the two has projected it.
        let fresh = [("Kinfolk-Token", token.as_str())];
        let counts = eventually("counts", || {
            let read = servers[there].ask("GET", &format!("/v1/users/{actor}/counts"), None, &fresh, None);
            (read.status == 200).then(|| read.json())
        });
        assert_eq!(counts["following"], round + 1, "{counts}");
        eventually("a projected follower", || {
            let read = [format!("AFTER {token}"), format!("SMEMBERS followers:{followee}")];
            let replies = connections[there].send(&read.each_ref().map(String::as_str));
            let is_late = replies[1].starts_with("-TRYAGAIN");
            let is_there = replies[1].trim_matches(['[', ']']).split(", ").any(|member| member == actor);
            assert!(is_late || is_there, "{replies:?}");
            is_there.then_some(())
        });
    }
}

#[test]
fn two_processes_serve_and_two_project_over_both_protocols() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let servers = [(); 2].map(|()| Running::start(&sandbox, "--role api --limit-changes none"));
    let [killed, project] = [(); 2].map(|()| Running::start(&sandbox, "--role project"));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|follower| {
                scope.spawn({
                    let servers = servers.each_ref();
                    move || write_and_read(servers, follower)
                })
            })
            .collect();
        assert_eq!(killed.end("KILL").0, -1);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    for server in &servers {
        let counts = server.get(&format!("/v1/users/{STAR}/counts")).json();
        assert_eq!(counts["followers"], CLIENTS, "{counts}");
        assert_eq!(server.redis(&format!("SCARD followers:{STAR}")), format!(":{CLIENTS}"));
    }
    let verified = sandbox.json(&format!("verify {}", servers[0].url()));
    let edges = CLIENTS * ROUNDS;
    assert_eq!((&verified["edges"], &verified["difference_count"]), (&json!(edges), &json!(0)), "{verified}");
    let [one, other] = servers;
    for server in [one, other, project] {
        assert_eq!(server.end("TERM").0, 0);
    }
}

/// Makes a database refuse everybody, as if its server had gone, or serve again.
fn set_reachable(databases: &Databases, database: usize, is_reachable: bool) {
    let name = databases.name(database);
    databases.beside(database, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {is_reachable}"));
    if !is_reachable {
        databases.beside(
            database,
            &format!("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'"),
        );
    }
}

#[test]
fn the_loss_of_a_host_is_clear_leaves_the_others_and_mends_itself() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let server = Running::start(&sandbox, "--limit-changes none");
    let follow = |follower: u64| {
        let answer = server.ask("POST", "/v1/users/100/follow", Some(&follower.to_string()), &[], None);
        let code = if answer.status == 204 { String::new() } else { answer.json()["code"].to_string() };
        (answer.status, code)
    };
    let mut connection = Connection::new(&server.resp);
    (1..=20).for_each(|follower| assert_eq!(follow(follower).0, 204));
    set_reachable(&databases, 2, false);

    let refused = (503, "\"unavailable\"".to_owned());
    let outcomes: Vec<_> = (1..=20).map(follow).collect();
    let lost: Vec<u64> = (1..=20).filter(|&follower| outcomes[follower as usize - 1] == refused).collect();
    assert!(!lost.is_empty() && lost.len() < 20, "the shards are on both hosts: {outcomes:?}");
    for (follower, outcome) in (1..=20).zip(&outcomes) {
        let is_lost = lost.contains(&follower);
        assert!(is_lost || outcome.0 == 204, "{follower}: {outcome:?}");
        let checked = server.get(&format!("/v1/users/{follower}/following/100"));
        assert_eq!(checked.status, if is_lost { 503 } else { 200 }, "{checked:?}");
        let reply =
            &connection.send(&[&format!("FOLLOWS {follower} 100"), &format!("FOLLOW {follower} 101")]);
        let starts =
            if is_lost { ["-TRYAGAIN a part of the storage can't be reached"; 2] } else { [":1", ""] };
        assert!(reply.iter().zip(starts).all(|(reply, start)| reply.starts_with(start)), "{reply:?}");
        assert_eq!(reply[1].starts_with('-'), is_lost, "{reply:?}");
    }
    // What was written meanwhile is projected to the host that is there.
    let behind = "SELECT count(*) FROM kinfolk.shards JOIN kinfolk.projected ON source = shard
                  WHERE projected.sequence < (SELECT max(sequence) FROM kinfolk.log WHERE log.shard = source)";
    eventually("projection", || (databases.numbers(1, behind) == [0]).then_some(()));
    eventually("the metric", || {
        server.get("/metrics").body.contains("kinfolk_fleet_hosts_unreachable 1\n").then_some(())
    });
    assert_eq!(sandbox.run("fleet status").status, 1);
    // A process that starts meanwhile serves what there is.
    let late = Running::start(&sandbox, "--role api");
    let check = |follower: u64| late.get(&format!("/v1/users/{follower}/following/100")).status;
    for follower in 1..=20 {
        assert_eq!(check(follower), if lost.contains(&follower) { 503 } else { 200 });
    }

    set_reachable(&databases, 2, true);
    for follower in lost {
        eventually("writes again", || (follow(follower).0 == 204).then_some(()));
        eventually("checks again", || (check(follower) == 200).then_some(()));
    }
    assert_eq!(late.end("TERM").0, 0);
    let token = server.ask("POST", "/v1/users/100/follow", Some("21"), &[], None).token.unwrap();
    let counts = eventually("counts of all", || {
        let read = server.ask("GET", "/v1/users/100/counts", None, &[("Kinfolk-Token", &token)], None);
        (read.status == 200).then(|| read.json())
    });
    assert_eq!(counts["followers"], 21, "{counts}");
    assert_eq!(server.end("TERM").0, 0);
}
