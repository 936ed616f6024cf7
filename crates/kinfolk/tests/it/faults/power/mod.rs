//! Power loss: one run of the real binary is recorded call by call, replayed into a modelled disk, and stopped at
//! random places; what the disk could then hold is opened with the real binary. After a power loss alone the store
//! must open: a refusal is a violation too.
//!
//! The recorded run: `KINFOLK_POWER_STATES=2000 cargo test --release -p kinfolk --test it faults::power -- --nocapture`

mod again;
pub mod crash;
pub mod disk;
pub mod record;
pub mod replay;
pub mod trace;

mod places;
mod self_test;

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use super::data::check::{Expected, must_recover};
use super::random::Random;
use super::{number, require_none, scratch, seed, tracer};
use again::lose_power_again;
use crash::{Style, materialise};
use disk::Disk;
use places::{Places, token_of};
use record::{Activity, DATA, Recording, record};
use replay::Replay;
use trace::{Event, Trace};

#[test]
fn a_power_loss_at_any_moment_loses_nothing_that_was_acknowledged() {
    if !tracer::available("power") {
        return;
    }
    let mut random = Random::new(seed("power"));
    let recording = recording();
    let made = recording.files_made();
    assert!(made >= 70, "only {made} files were made: the small settings of this test are not in effect");
    let states = number("KINFOLK_POWER_STATES", 60);
    let mut losses = Losses::new(recording, &mut random, states);
    losses.run(|_| false);
    losses.require_complete();
    println!(
        "power: {} operations, {} calls recorded, {} places to stop at ({} with something pending), {states} states \
         ({} all lost, {} all kept, {} lost again in the recovery), {} syncs, {} violations",
        recording.history.entries.len(),
        recording.processes.iter().map(|(_, trace)| trace.calls.len()).sum::<usize>(),
        losses.places.all.len(),
        losses.places.pending.iter().map(Vec::len).sum::<usize>(),
        losses.all_lost,
        losses.all_kept,
        losses.twice,
        losses.syncs,
        losses.violations.len()
    );
    require_none("power", &losses.violations);
}

/// The recording that all tests here share.
fn recording() -> &'static Recording {
    static RECORDING: OnceLock<Recording> = OnceLock::new();
    RECORDING.get_or_init(|| record(&mut Random::new(seed("power, recording")).fork(1)))
}

/// The replay of a recording, stopped here and there.
struct Losses<'a> {
    recording: &'a Recording,
    replay: Replay,
    random: &'a mut Random,
    /// The places to stop at, in order; one may be there several times.
    stops: std::iter::Peekable<std::vec::IntoIter<usize>>,
    places: Places,
    place: usize,
    /// The position that each token stands for.
    positions: HashMap<&'a str, usize>,
    /// The highest position that was acknowledged.
    acknowledged: usize,
    syncs: usize,
    all_lost: usize,
    all_kept: usize,
    twice: usize,
    violations: Vec<String>,
}

impl<'a> Losses<'a> {
    fn new(recording: &'a Recording, random: &'a mut Random, states: usize) -> Self {
        let places = Places::of(recording);
        let stops: Vec<usize> = places.choose(states, random);
        Self {
            recording,
            replay: Replay::new(Disk::empty(), &recording.root),
            random,
            stops: stops.into_iter().peekable(),
            places,
            place: 0,
            positions: recording.positions(),
            acknowledged: 0,
            syncs: 0,
            all_lost: 0,
            all_kept: 0,
            twice: 0,
            violations: Vec::new(),
        }
    }

    /// Replays until it is enough, which is asked after every violation.
    fn run(&mut self, is_enough: fn(&str) -> bool) {
        for (activity, trace) in &self.recording.processes {
            self.replay.new_process();
            for &event in &trace.events {
                self.replay
                    .step(trace, event)
                    .unwrap_or_else(|problem| panic!("the recording cannot be replayed: {problem}"));
                // What an answer was begun for must be in the store.
                let position = token_of(trace, event).and_then(|token| self.positions.get(token));
                self.acknowledged = self.acknowledged.max(position.copied().unwrap_or(0));
                self.syncs += usize::from(is_sync(trace, event));
                self.lose_power_if_planned(trace, event);
                self.place += 1;
                if self.violations.last().is_some_and(|found| is_enough(found)) {
                    return;
                }
            }
            if *activity == Activity::Import {
                self.acknowledged = self.recording.imported();
            }
        }
    }

    fn require_complete(&self) {
        let entries = self.recording.history.entries.len();
        assert_eq!(self.acknowledged, entries, "the record shows every answer");
        // The proof that record, parser and model miss nothing: they end with the files that the run really left.
        let difference = self.replay.disk.difference(&self.recording.left);
        assert_eq!(difference, None, "the replay must end with the real files");
    }

    fn lose_power_if_planned(&mut self, trace: &Trace, event: Event) {
        while self.stops.next_if_eq(&self.place).is_some() {
            if self.replay.left_out() == Some(0) {
                // Nothing is wrong yet.
                continue;
            }
            let folder = scratch();
            let style = Style::choose(self.random);
            self.all_lost += usize::from(style == Style::AllLost);
            self.all_kept += usize::from(style == Style::AllKept);
            let mut same_again = self.random.clone();
            let mut fates = materialise(&self.replay.disk, style, self.random, folder.path());
            if let Err(problem) = self.check(folder.path(), &mut fates) {
                let at = self.describe(trace, event);
                let fates = fates.join("; ").replace(&format!("{}/", folder.path().display()), "");
                let kept = if self.violations.len() < 3 && self.replay.left_out().is_none() {
                    // The check changed the folder, so the state is made again for whoever looks into it.
                    let kept = tempfile::tempdir().expect("a temporary folder").keep();
                    materialise(&self.replay.disk, style, &mut same_again, &kept);
                    format!("; state kept in {}", kept.display())
                } else {
                    String::new()
                };
                self.violations.push(format!("{style:?} {at}: {problem} [{fates}]{kept}"));
            }
        }
    }

    /// Opens what the power loss left; now and then power is lost once more meanwhile.
    fn check(&mut self, left: &Path, fates: &mut Vec<String>) -> Result<(), String> {
        let expected = Expected {
            history: &self.recording.history,
            bounds: self.recording.bounds(self.acknowledged),
            erased: self.recording.erased(self.acknowledged),
        };
        if !self.random.once_in(5) {
            return must_recover(&left.join(DATA), &expected, self.random).map(drop);
        }
        self.twice += 1;
        let folder = scratch();
        fates.extend(lose_power_again(left, self.random, folder.path())?);
        must_recover(&folder.path().join(DATA), &expected, self.random).map(drop)
    }

    fn describe(&self, trace: &Trace, event: Event) -> String {
        let what = match event {
            Event::Begin(index) => format!("when {} began", trace.calls[index].name),
            Event::End(index) => format!("after {}", trace.calls[index].name),
            Event::Exit(_) => "after the end of a thread".to_owned(),
        };
        format!("at place {} {what}, {:?}", self.place, self.recording.bounds(self.acknowledged))
    }
}

fn is_sync(trace: &Trace, event: Event) -> bool {
    matches!(event, Event::End(index) if matches!(trace.calls[index].name.as_str(), "fsync" | "fdatasync"))
}
