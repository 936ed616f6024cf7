//! Judges a folder after a fault: what may be in it, and whether it may be refused.

use std::path::Path;

use super::compare::compare;
use super::history::{Bounds, History};
use super::workload::Workload;
use super::{End, Server};
use crate::faults::pieces;
use crate::faults::program::{self, excerpt};
use crate::faults::random::Random;

/// What a folder must hold.
pub struct Expected<'a> {
    pub history: &'a History,
    pub bounds: Bounds,
    /// Texts that may not be in any file.
    pub erased: &'a [String],
}

impl<'a> Expected<'a> {
    /// All of a history, and what it does not know the outcome of, or not.
    pub fn all(history: &'a History) -> Self {
        let count = history.entries.len();
        Self { history, bounds: Bounds { at_least: count, at_most: count }, erased: &[] }
    }
}

/// How a folder that was damaged turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything acknowledged is there, and the parts agree.
    Intact,
    /// The program said that something is wrong, and what.
    Refused,
}

/// After a crash the folder must open, hold a prefix with all that was acknowledged, agree with itself, and take new writes.
/// Returns what it holds then.
pub fn must_recover(data: &Path, expected: &Expected<'_>, random: &mut Random) -> Result<History, String> {
    if random.once_in(2) {
        program::open_and_close(data).require_success("opening for writing")?;
    }
    let server = start(data)?;
    let mut found = read(&server, expected)?;
    found.begin_again();
    let end = if random.once_in(2) { End::InOrder } else { End::Kill };
    if random.once_in(4) {
        must_take_writes((data, server), &mut found, random)?;
    } else {
        server.end(end).require_success("serving")?;
    }
    if let Some(found) = pieces::find(data, &pieces::of(expected.erased))? {
        return Err(format!("a purged text that was erased is there: {found}"));
    }
    program::verify(data).require_success("verify")?;
    Ok(found)
}

fn start(data: &Path) -> Result<Server, String> {
    Server::on(data).map_err(|ended| format!("it did not start: {}", excerpt(&ended.errors)))
}

/// Everything that a server shows is the effect of its log, which is as expected.
fn read(server: &Server, expected: &Expected<'_>) -> Result<History, String> {
    let reader = server.reader();
    let found = expected.history.recovered(&reader, expected.bounds)?;
    if let Some(found) = &found {
        compare(&found.model, &reader)?;
    }
    match reader.told().first() {
        None => found.ok_or_else(|| "the log cannot be read, and nothing says why".to_owned()),
        Some(told) => Err(format!("something cannot be read: {told}")),
    }
}

/// Whatever was lost, what comes next is kept.
fn must_take_writes(
    (data, server): (&Path, Server),
    history: &mut History,
    random: &mut Random,
) -> Result<(), String> {
    let mut workload = Workload::after(history, random.fork(4));
    server
        .write(history, &mut workload, 3)
        .map_err(|problem| format!("writing after the recovery: {problem}"))?;
    server.end(End::Kill).require_success("serving")?;
    let server = start(data)?;
    read(&server, &Expected::all(history)).map_err(|problem| format!("after more writes: {problem}"))?;
    server.end(End::InOrder).require_success("serving")
}

/// After damage the folder must hold a prefix with all that was acknowledged and agree with itself, or be refused
/// with a reason. Anything else is a silent loss.
pub fn must_tell(data: &Path, expected: &Expected<'_>, random: &mut Random) -> Result<Verdict, String> {
    if random.once_in(2) {
        let opened = program::open_and_close(data);
        opened.orderly().map_err(|problem| format!("opening for writing {problem}"))?;
    }
    let mut started = Server::on(data);
    if let Err(refused) = &started {
        refused.orderly().map_err(|problem| format!("serving {problem}"))?;
        let verified = program::verify(data);
        verified.orderly().map_err(|problem| format!("verify {problem}"))?;
        if !verified.succeeded() {
            return Ok(Verdict::Refused);
        }
        // Refused once and then opened: only right if nothing is missing from what opened.
        started = Server::on(data);
    }
    let Ok(server) = started else { return Ok(Verdict::Refused) };
    let reader = server.reader();
    let silent = |problem| format!("silent loss: {problem}");
    let found = expected.history.recovered(&reader, expected.bounds).map_err(silent)?;
    if let Some(found) = &found {
        compare(&found.model, &reader).map_err(silent)?;
    }
    let told = found.is_none() || !reader.told().is_empty();
    let end = if random.once_in(2) { End::InOrder } else { End::Kill };
    server.end(end).orderly().map_err(|problem| format!("serving {problem}"))?;
    let verified = program::verify(data);
    verified.orderly().map_err(|problem| format!("verify {problem}"))?;
    Ok(if told || !verified.succeeded() { Verdict::Refused } else { Verdict::Intact })
}
