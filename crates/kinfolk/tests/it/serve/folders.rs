//! What others do to the folder of a running server: remove its lock, move it, put another one in its place.

use std::fs;
use std::time::{Duration, Instant};

use super::running::{PATIENCE, Running};
use crate::support::{Sandbox, entries};

fn follow(server: &Running, follower: &str, followee: u64) -> u16 {
    server.ask("POST", &format!("/v1/users/{followee}/follow"), Some(follower), &[], None).status
}

#[test]
fn a_folder_has_one_owner_also_without_the_lock_file() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    assert_eq!(follow(&server, "1", 2), 204);
    for _ in 0..2 {
        fs::remove_file(sandbox.path("kinfolk-data/LOCK")).ok();
        let message = sandbox.fails("follow 5 6", 1);
        assert!(message.contains("open in another") && message.contains("--url"), "{message}");
        let run = Running::try_start(&sandbox, "").err().expect("a second server is refused");
        assert_eq!(run.status, 1);
        assert!(run.stderr.contains("kinfolk-data is open in another Kinfolk process"), "{run:?}");
    }
    assert_eq!(follow(&server, "1", 3), 204);
    assert_eq!(server.end("TERM").0, 0);
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 3);
}

#[test]
fn a_folder_that_is_moved_or_replaced_takes_no_more_writes() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--resp",
        "127.0.0.1:0",
        "--data",
        "kinfolk-data",
    ]);
    command.env("KINFOLK_TEST_SEGMENT_BYTES", "1024");
    let server = Running::from_command(command).unwrap_or_else(|run| panic!("{run:?}"));
    assert_eq!(follow(&server, "1", 2), 204);
    fs::rename(sandbox.path("kinfolk-data"), sandbox.path("elsewhere")).unwrap();
    assert!(sandbox.fails("check 1 2 --data elsewhere", 1).contains("open in another"));
    // Another store takes its place, and is not touched.
    sandbox.ok("follow 8 9");
    let log = entries(&sandbox.path("kinfolk-data/log"));

    let mut acknowledged = 1;
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        let answer =
            server.ask("POST", &format!("/v1/users/{}/follow", acknowledged + 2), Some("1"), &[], None);
        if answer.status != 204 {
            break answer;
        }
        acknowledged += 1;
        assert!(Instant::now() < deadline, "writes go on");
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!((refused.status, &refused.json()["code"]), (503, &"read_only".into()), "{refused:?}");
    assert_eq!(server.get("/v1/users/1/following/2").json()["following"], true, "reads go on");
    let (status, said) = server.end("TERM");
    assert_eq!(status, 1);
    assert!(said.iter().any(|line| line.contains("was moved or replaced")), "{said:?}");
    assert_eq!(entries(&sandbox.path("kinfolk-data/log")), log);
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 2);
    assert_eq!(
        sandbox.export("elsewhere").lines().count(),
        1 + acknowledged,
        "what was acknowledged is there"
    );
    sandbox.ok("verify --data elsewhere");
}
