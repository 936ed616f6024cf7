//! A server that has lost a part of itself ends: what restarts it then gets a whole one.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use super::running::PATIENCE;
use crate::support::Sandbox;

#[test]
fn a_server_whose_redis_threads_can_not_start_does_not_stay() {
    let sandbox = Sandbox::new();
    let serve = sandbox.command(["serve", "--http=127.0.0.1:0", "--resp=127.0.0.1:0", "--resp-threads=400"]);
    // Each thread takes a few descriptors, of which there are not enough.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 300; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    command.current_dir(sandbox.path("")).env("KINFOLK_DATA", "./kinfolk-data");
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (sender, said) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        let _ = sender.send(text);
    });
    // What it says ends with it.
    let said = said.recv_timeout(PATIENCE);
    let _ = child.kill();
    let status = child.wait().unwrap();
    let said = said.expect("it goes on without the Redis protocol");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("the Redis protocol ended by itself: Too many open files"), "{said}");
}
