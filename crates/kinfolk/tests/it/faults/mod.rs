//! Durability of the real binary under faults: processes killed, power lost, bits flipped, syncs failing, disks
//! full. Not a test of the store's interface, and never of anything but what ends up in the folder.
//!
//! Every test but [`feeds`] and [`comments`] drives `kinfolk apply` through one pipe, so what was submitted has one order, and then asks one
//! question of the folder: is there a `k`, at least the number of acknowledged steps and at most the number of
//! submitted ones, so that the folder holds exactly the effect of the first `k` steps?
//!
//! | test | fault | how many, by variable | usual | recorded run |
//! |---|---|---|---|---|
//! | [`kill`] | SIGKILL at a random moment | `KINFOLK_CRASH_CYCLES` | 15 | 1,000 |
//! | [`feeds`] | SIGKILL of a server in the middle of fan-out | `KINFOLK_CRASH_CYCLES` | 6 | 300 |
//! | [`comments`] | SIGKILL of a server that takes comments, and of one that erases purged ones | `KINFOLK_CRASH_CYCLES` | 6 | 150 |
//! | [`restore`] | SIGKILL of a restore, at random moments and before its calls | `KINFOLK_CRASH_CYCLES`, `KINFOLK_FAULT_SITES` | 10, 20 | 300, 600 |
//! | [`power`] | un-synced data lost, torn, reordered | `KINFOLK_POWER_STATES` | 60 | 2,000 |
//! | [`damage`] | bit flips, cut and missing files | `KINFOLK_FLIPS` | 80 | 2,000 |
//! | [`failing`] | sync errors, a disk that fills up | `KINFOLK_FAULT_SITES` | 20 | 100,000 (all) |
//!
//! For example: `KINFOLK_CRASH_CYCLES=1000 cargo test --release -p kinfolk --test it faults::kill -- --nocapture`.
//! `KINFOLK_SEED` replaces the seed, which every test prints. The tests that need `strace` say so where it is
//! missing or not permitted, and fail then only if `KINFOLK_REQUIRE_FAULT_TOOLS` is set.

mod check;
mod comments;
mod damage;
mod failing;
mod feeds;
mod full;
mod kill;
mod model;
mod power;
mod program;
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

/// Fails with all that was found, the first ones in full.
fn require_none(test: &str, violations: &[String]) {
    let shown: Vec<&str> = violations.iter().take(12).map(String::as_str).collect();
    assert!(violations.is_empty(), "{test}: {} violations\n- {}", violations.len(), shown.join("\n- "));
}
