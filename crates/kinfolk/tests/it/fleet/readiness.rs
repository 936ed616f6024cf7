//! Whether a process of a fleet should be sent requests.

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::{Answer, Running};

#[test]
fn a_process_whose_clock_is_ahead_is_not_ready_and_says_why() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let clock = sandbox.write("clock", "0");
    let mut command = sandbox.command(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command.env("KINFOLK_TEST_CLOCK_FILE", &clock);
    let server = Running::from_command(command).unwrap_or_else(|run| panic!("{run:?}"));
    let ready = |status: u16| -> Answer {
        eventually("readiness", || Some(server.get("/readyz")).filter(|answer| answer.status == status))
    };
    ready(200);
    sandbox.write("clock", "60000");
    let problem = ready(503).json();
    assert_eq!(problem["code"], "not_ready");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("the clock of this process is") && detail.contains("ahead of host"), "{detail}");
    server.line_with("not ready");
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/v1/users/1/counts").status, 200, "those who ask are served");
    sandbox.write("clock", "0");
    ready(200);
    assert_eq!(server.end("TERM").0, 0);
}
