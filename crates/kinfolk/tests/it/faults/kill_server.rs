//! `kill -9` of a server that takes all kinds of data. Cycles go on in one folder; after each the log must be a prefix of what was
//! submitted that holds all that was acknowledged, and everything that can be read must be its effect.
//!
//! The recorded run:
//! `KINFOLK_CRASH_CYCLES=300 cargo test --release -p kinfolk --test it faults::kill_server -- --nocapture`

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::data::Server;
use super::data::check::{Expected, must_recover};
use super::data::history::History;
use super::data::workload::Workload;
use super::random::Random;
use super::session::Session;
use super::{number, program, require_none, seed};

#[test]
fn a_killed_server_keeps_everything_that_was_acknowledged() {
    let mut random = Random::new(seed("kill server"));
    let cycles = number("KINFOLK_CRASH_CYCLES", 10);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let mut history = History::default();
    let (mut interrupted, mut recoveries_killed) = (0, 0);
    for cycle in 0..cycles {
        let outcome = write_and_kill(&data, &mut history, &mut random).and_then(|()| {
            interrupted += usize::from(history.has_failures());
            if random.once_in(4) {
                kill_a_recovery(&data, &mut random);
                recoveries_killed += 1;
            }
            must_recover(&data, &Expected::all(&history), &mut random)
        });
        match outcome {
            Ok(found) => history = found,
            Err(problem) => {
                let kept = folder.keep();
                let problem = format!("cycle {cycle}: {problem}; folder kept: {}", kept.display());
                require_none("kill server", &[problem]);
                return;
            }
        }
    }
    println!(
        "kill server: {cycles} cycles, {} operations submitted, {} in the log, {interrupted} kills with some under way, \
         {recoveries_killed} recoveries killed, 0 lost, 0 changed",
        history.submitted(),
        history.entries.len()
    );
}

/// Writes for a while, and kills the server while operations are under way.
fn write_and_kill(data: &Path, history: &mut History, random: &mut Random) -> Result<(), String> {
    let mut workload = Workload::after(history, random.fork(history.submitted() as u64));
    let server = Server::on(data).map_err(|ended| format!("it did not start: {ended:?}"))?;
    server.write(history, &mut workload, random.below(25))?;
    let delay = Duration::from_micros(random.below(4_000) as u64);
    server.round_and_kill(history, &mut workload, delay)
}

/// A kill while the log's tail is being replayed must not matter either.
fn kill_a_recovery(data: &Path, random: &mut Random) {
    let session = Session::start(Command::new(program::binary()).args(program::apply_arguments(data)));
    thread::sleep(Duration::from_micros(random.below(15_000) as u64));
    session.kill();
}
