//! A server whose store loses a thread: it is not ready from then on, refuses writes clearly, and ends with the reason.

use std::fs;
use std::time::{Duration, Instant};

use super::running::{PATIENCE, Running};
use crate::support::Sandbox;

fn start(sandbox: &Sandbox, more: &[&str]) -> Running {
    let mut command = sandbox.command(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command.args(more).env("KINFOLK_TEST_CLOCK_FILE", sandbox.path("clock"));
    Running::from_command(command).unwrap_or_else(|run| panic!("{run:?}"))
}

fn follow(server: &Running, followee: u64) -> (u16, String) {
    let answer = server.ask("POST", &format!("/v1/users/{followee}/follow"), Some("1"), &[], None);
    (answer.status, if answer.status == 204 { String::new() } else { answer.json()["code"].to_string() })
}

#[test]
fn a_server_whose_writer_has_died_is_not_ready_and_ends() {
    for thread in ["kinfolk-writer", "kinfolk-maintenance"] {
        let sandbox = Sandbox::new();
        let server = start(&sandbox, &["--drain", "1h"]);
        assert_eq!(follow(&server, 2).0, 204);
        assert_eq!(server.get("/readyz").status, 200);
        fs::write(sandbox.path("clock"), format!("panic {thread}")).unwrap();
        if thread == "kinfolk-writer" {
            // What becomes of this one is not known.
            assert_eq!(follow(&server, 3).0, 503);
        }
        let deadline = Instant::now() + PATIENCE;
        while server.get("/readyz").status != 503 {
            assert!(Instant::now() < deadline, "it is ready though {thread} is dead");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(follow(&server, 4), (503, "\"read_only\"".to_owned()));
        assert!(server.redis("FOLLOW 1 4").starts_with("-ERR writes are refused"));
        let metrics = server.get("/metrics").body;
        assert!(metrics.contains("\nkinfolk_store_failed 1\n"), "{metrics}");
        assert_eq!(server.get("/v1/users/1/following/2").json()["following"], true, "reads go on");
        server.line_with("stopping");
        assert_eq!(server.get("/healthz").status, 200);
        let (status, _) = server.end("TERM");
        assert_eq!(status, 1);
        fs::remove_file(sandbox.path("clock")).unwrap();

        // Without a drain nobody has to end it.
        let server = start(&sandbox, &[]);
        fs::write(sandbox.path("clock"), format!("panic {thread}")).unwrap();
        if thread == "kinfolk-writer" {
            assert_eq!(follow(&server, 5).0, 503);
        }
        let (status, said) = server.wait();
        assert_eq!(status, 1);
        assert!(said.iter().any(|line| line.contains(&format!("the thread {thread} has died"))), "{said:?}");
        assert_eq!(sandbox.json("counts 1")["following"], 1);
    }
}
