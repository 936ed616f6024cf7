//! The keys of the Redis protocol, all of them: counted and walked over, across a restart.

use super::running::Running;
use crate::support::Sandbox;

#[test]
fn keys_are_counted_and_found_across_a_restart() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    assert_eq!(server.redis("DBSIZE").trim(), ":0");
    server.redis("SADD following:1 2 3");
    server.redis("SADD following:2 3");
    server.redis("SREM following:2 3");
    assert_eq!(server.redis("DBSIZE").trim(), ":3");
    let (status, _) = server.end("TERM");
    assert_eq!(status, 0);

    let server = Running::start(&sandbox, "");
    assert_eq!(server.redis("DBSIZE").trim(), ":3");
    let (status, _) = server.end("KILL");
    assert_ne!(status, 0);

    let server = Running::start(&sandbox, "");
    assert_eq!(server.redis("DBSIZE").trim(), ":3");
    assert!(server.redis("SCAN 4294967297 COUNT 1").starts_with("-ERR the cursor is from before a restart"));
    server.end("TERM");
}
