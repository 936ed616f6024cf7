//! `kill -9` at random moments under load. Cycles go on in one folder; after each the state must be the effect of a
//! prefix of what was submitted that holds all that was acknowledged.
//!
//! The recorded run: `KINFOLK_CRASH_CYCLES=1000 cargo test --release -p kinfolk --test it faults::kill -- --nocapture`

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::model::{Edges, Submitted, apply};
use super::random::Random;
use super::session::{Answer, Session};
use super::workload::{Pair, Step, Workload};
use super::{number, program, require_none, seed};

#[test]
fn a_killed_process_loses_nothing_that_was_acknowledged() {
    let seed = seed("kill");
    let cycles = number("KINFOLK_CRASH_CYCLES", 15);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut harness = Harness::new(folder.path().join("data"), Random::new(seed));
    for cycle in 0..cycles {
        if let Err(problem) = harness.cycle(cycle) {
            let kept = folder.keep();
            require_none("kill", &[format!("cycle {cycle}: {problem}; folder kept: {}", kept.display())]);
            return;
        }
        if (cycles <= 50 || cycle % 5 == 0 || cycle + 1 == cycles)
            && let Err(problem) = harness.verify()
        {
            let kept = folder.keep();
            require_none("kill", &[format!("cycle {cycle}: {problem}; folder kept: {}", kept.display())]);
            return;
        }
    }
    println!(
        "kill: {cycles} cycles, {} steps submitted, {} acknowledged, {} verified folders, {} recoveries killed, \
         0 lost, 0 half edges",
        harness.submitted, harness.acknowledged, harness.verified, harness.recoveries_killed
    );
}

#[test]
fn a_process_killed_while_it_makes_a_store_leaves_nothing_in_the_way() {
    let seed = seed("kill while making");
    let stores = number("KINFOLK_CRASH_CYCLES", 15);
    let mut violations = Vec::new();
    for store in 0..stores {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut harness = Harness::new(folder.path().join("data"), Random::new(seed).fork(store as u64));
        harness.kill_a_recovery();
        if let Err(problem) = harness.cycle(0).and_then(|()| harness.verify()) {
            violations.push(format!("store {store}: {problem}"));
        }
    }
    println!("kill while making: {stores} stores, {} violations", violations.len());
    require_none("kill while making", &violations);
}

/// One folder, and what it must hold.
struct Harness {
    data: PathBuf,
    random: Random,
    workload: Workload,
    edges: BTreeMap<Pair, String>,
    submitted: usize,
    acknowledged: usize,
    verified: usize,
    recoveries_killed: usize,
}

impl Harness {
    fn new(data: PathBuf, random: Random) -> Self {
        let workload = Workload::new(random.fork(1), 60);
        Self {
            data,
            random,
            workload,
            edges: BTreeMap::new(),
            submitted: 0,
            acknowledged: 0,
            verified: 0,
            recoveries_killed: 0,
        }
    }

    /// Writes, kills, recovers, compares.
    fn cycle(&mut self, cycle: usize) -> Result<(), String> {
        let count = 50 + self.random.below(1_400);
        let steps = self.workload.steps(count);
        let answers = self.write_and_kill(&steps);
        self.submitted += steps.len();
        self.acknowledged += answers.len();
        let before: Edges = self.edges.keys().copied().collect();
        check_answers(&before, &steps, &answers)?;
        if cycle == 0 {
            // The kill may have come before the store was made: only a writer makes one.
            program::open_and_close(&self.data).require_success("opening again")?;
        } else if self.random.once_in(4) {
            self.kill_a_recovery();
        }
        let ended = program::export(&self.data);
        ended.require_success("export after the kill")?;
        let found = program::parse_export(&ended.output)?;
        let submitted = Submitted { before: &before, steps: &steps, acknowledged: answers.len() };
        submitted.explain(&found.keys().copied().collect())?;
        self.check_since(&steps, &found)?;
        self.edges = found;
        Ok(())
    }

    /// Submits all steps at once and kills after a random number of answers and some more microseconds.
    fn write_and_kill(&mut self, steps: &[Step]) -> Vec<Answer> {
        let mut session = Session::start(&mut self.apply_command());
        session.send(steps);
        // Then the kill may also hit the closing of the store.
        if self.random.once_in(3) {
            session.close_input();
        }
        let wanted = match self.random.below(8) {
            0 => 0,
            1 => steps.len(),
            _ => self.random.below(steps.len()),
        };
        let mut answers = session.answers(wanted);
        // The delay is the fault, not a wait for something: zero answers need the time of a start to be of interest.
        let delay_us_max = if wanted == 0 { 30_000 } else { 3_000 };
        thread::sleep(Duration::from_micros(self.random.below(delay_us_max) as u64));
        answers.extend(session.kill());
        answers
    }

    /// A crash while the log's tail is being replayed must not matter either.
    fn kill_a_recovery(&mut self) {
        let session = Session::start(&mut self.apply_command());
        thread::sleep(Duration::from_micros(self.random.below(15_000) as u64));
        session.kill();
        self.recoveries_killed += 1;
    }

    fn apply_command(&self) -> Command {
        let mut command = Command::new(program::binary());
        command.args(program::apply_arguments(&self.data));
        command
    }

    /// Edges that no step of this cycle touched must have kept their time.
    fn check_since(&self, steps: &[Step], found: &BTreeMap<Pair, String>) -> Result<(), String> {
        let touched: BTreeSet<Pair> = steps.iter().map(Step::pair).collect();
        for (pair, since) in self.edges.iter().filter(|(pair, _)| !touched.contains(pair)) {
            if found.get(pair) != Some(since) {
                return Err(format!("{pair:?} was not touched; since {since} became {:?}", found.get(pair)));
            }
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), String> {
        self.verified += 1;
        program::verify(&self.data).require_success("verify")
    }
}

/// Every acknowledgement must also say rightly whether the step changed anything.
fn check_answers(before: &Edges, steps: &[Step], answers: &[Answer]) -> Result<(), String> {
    let mut edges = before.clone();
    for (index, (step, answer)) in steps.iter().zip(answers).enumerate() {
        let changed = apply(&mut edges, step);
        if *answer != (Answer::Ok { changed }) {
            return Err(format!("step {index} {step:?}: expected changed {changed}, answered {answer:?}"));
        }
    }
    Ok(())
}
