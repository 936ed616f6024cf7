//! Durability of the real binary under faults: processes killed, power lost, bits flipped, syncs failing, disks
//! full. Not a test of the store's interface, and never of anything but what ends up in the folder.
//!
//! Most tests write all kinds of data ([`data`]) to a server, and then ask one question of the folder: does its log hold a prefix of
//! what was submitted, with everything that was acknowledged, and is all that can be read the effect of just that prefix?
//! [`kill`] asks the same of `kinfolk apply`, and [`feeds`] of fan-out to a crowd.
//!
//! | test | fault | how many, by variable | usual | recorded run |
//! |---|---|---|---|---|
//! | [`kill`] | SIGKILL at a random moment | `KINFOLK_CRASH_CYCLES` | 15 | 1,000 |
//! | [`feeds`] | SIGKILL of a server in the middle of fan-out | `KINFOLK_CRASH_CYCLES` | 6 | 300 |
//! | [`kill_server`] | SIGKILL of a server that takes all kinds of data | `KINFOLK_CRASH_CYCLES` | 10 | 300 |
//! | [`purge`] | SIGKILL of a server that erases purged texts | `KINFOLK_CRASH_CYCLES` | 6 | 150 |
//! | [`restore`] | SIGKILL of a restore, at random moments and before its calls | `KINFOLK_CRASH_CYCLES`, `KINFOLK_FAULT_SITES` | 10, 20 | 300, 600 |
//! | [`import`] | SIGKILL of an import, and of the start after it while it cleans up | `KINFOLK_FAULT_SITES` | 20 | 600 |
//! | [`power`] | un-synced data lost, torn, reordered | `KINFOLK_POWER_STATES` | 60 | 2,000 |
//! | [`damage`] | bit flips, cut and missing files | `KINFOLK_FLIPS` | 80 | 2,000 |
//! | [`failing`] | sync errors, a disk that fills up | `KINFOLK_FAULT_SITES` | 20 | 100,000 (all) |
//!
//! For example: `KINFOLK_CRASH_CYCLES=1000 cargo test --release -p kinfolk --test it faults::kill -- --nocapture`.
//! `KINFOLK_SEED` replaces the seed, which every test prints. The tests that need `strace` say so where it is
//! missing or not permitted, and fail then only if `KINFOLK_REQUIRE_FAULT_TOOLS` is set.

mod client;
mod damage;
mod data;
mod failing;
mod feeds;
mod full;
mod import;
mod kill;
mod kill_server;
mod model;
mod pieces;
mod power;
mod program;
mod purge;
pub mod random;
mod restore;
mod session;
mod small_disk;
mod tracer;
mod workload;

/// A number from the environment, so that the same test serves a quick run and a long one.
fn number(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
        Err(_) => usual,
    }
}

/// The seed of a test: fixed, unless `KINFOLK_SEED` gives another. Printed, so that a failure can be replayed.
fn seed(test: &str) -> u64 {
    let seed = number("KINFOLK_SEED", 20_260_418) as u64;
    println!("{test}: seed {seed} (replay with KINFOLK_SEED={seed})");
    seed
}

/// A folder for states that are made up: in memory where there is room for it, as syncs of them prove nothing and take most of
/// the time.
fn scratch() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Fails with all that was found, the first ones in full.
fn require_none(test: &str, violations: &[String]) {
    let shown: Vec<&str> = violations.iter().take(12).map(String::as_str).collect();
    assert!(violations.is_empty(), "{test}: {} violations\n- {}", violations.len(), shown.join("\n- "));
}
