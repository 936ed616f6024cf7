//! Judges a folder after a fault: what may be in it, and whether it may be refused.

use std::path::Path;
use std::process::Command;

use super::model::Submitted;
use super::program::{self, excerpt};
use super::random::Random;
use super::session::{Answer, Session};
use super::workload::{Pair, Step};

/// How a folder that was damaged turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything acknowledged is there, and the parts agree.
    Intact,
    /// The program said that something is wrong, and what.
    Refused,
}

/// After a crash the folder must open, hold a prefix with all that was acknowledged, agree with itself, and take
/// new writes.
pub fn must_recover(data: &Path, submitted: Submitted<'_>, random: &mut Random) -> Result<(), String> {
    // A store whose making was interrupted is made again by a writer; readers need not do that.
    if submitted.acknowledged == 0 || random.once_in(2) {
        program::open_and_close(data).require_success("opening for writing")?;
    }
    submitted.explain(&program::edges_of(data)?)?;
    program::verify(data).require_success("verify")?;
    if random.once_in(4) { must_take_writes(data) } else { Ok(()) }
}

/// A follow between users that no workload has must be new, and be there afterwards.
fn must_take_writes(data: &Path) -> Result<(), String> {
    let mut session = Session::start(Command::new(program::binary()).args(program::apply_arguments(data)));
    let pair = Pair { follower: 1_000_001, followee: 1_000_002 };
    session.send(&[Step::Follow(pair)]);
    let (answers, ended) = session.finish();
    ended.require_success("a write after the recovery")?;
    if answers != [Answer::Ok { changed: true }] {
        return Err(format!("a write after the recovery was answered {answers:?}"));
    }
    let found = program::edges_of(data)?.contains(&pair);
    if found { Ok(()) } else { Err("a write after the recovery is missing".to_owned()) }
}

/// After damage the folder must hold a prefix with all that was acknowledged and agree with itself, or be refused
/// with a reason. Anything else is a silent loss.
pub fn must_tell(data: &Path, submitted: Submitted<'_>, random: &mut Random) -> Result<Verdict, String> {
    if random.once_in(2) {
        let opened = program::open_and_close(data);
        opened.orderly().map_err(|problem| format!("opening for writing {problem}"))?;
    }
    let exported = program::export(data);
    exported.orderly().map_err(|problem| format!("export {problem}"))?;
    if exported.succeeded() {
        let found = program::parse_export(&exported.output)?.into_keys().collect();
        submitted.explain(&found).map_err(|problem| format!("silent loss: {problem}"))?;
    }
    let verified = program::verify(data);
    verified.orderly().map_err(|problem| format!("verify {problem}"))?;
    match (exported.succeeded(), verified.succeeded()) {
        (true, true) => Ok(Verdict::Intact),
        // Refused once and then opened: only right if nothing is missing from what opened.
        (false, true) => {
            let refused = excerpt(&exported.errors);
            let explained = program::edges_of(data).and_then(|found| submitted.explain(&found));
            explained
                .map(|_| Verdict::Refused)
                .map_err(|problem| format!("refused once ({refused}), then silent loss: {problem}"))
        }
        (_, false) => Ok(Verdict::Refused),
    }
}
