//! A second power loss, while the store recovers from a first one.

use std::path::Path;

use super::super::random::Random;
use super::super::{program, tracer};
use super::crash::{Style, materialise};
use super::disk::Disk;
use super::places::changes_files;
use super::record::{DATA, read_trace};
use super::replay::Replay;
use super::trace::Event;

/// Opens the store below `root`, records that, and writes a state in which it could have been interrupted to `target`.
/// Returns how each file fared.
pub fn lose_power_again(root: &Path, random: &mut Random, target: &Path) -> Result<Vec<String>, String> {
    let root = root.canonicalize().expect("the folder exists");
    let mut replay = Replay::new(Disk::load(&root), &root);
    let record = tempfile::NamedTempFile::new().expect("a temporary file");
    let arguments = program::apply_arguments(&root.join(DATA));
    let ended = program::run(&mut tracer::command(record.path(), &arguments, None), b"");
    ended.require_success("recovering")?;
    let trace = read_trace(record.path());
    let changing =
        |&at: &usize| matches!(trace.events[at], Event::End(index) if changes_files(&trace.calls[index]));
    let places: Vec<usize> = (0..trace.events.len()).filter(changing).collect();
    let stop = if places.is_empty() { trace.events.len() } else { places[random.below(places.len())] + 1 };
    for &event in &trace.events[..stop] {
        replay
            .step(&trace, event)
            .unwrap_or_else(|problem| panic!("a recovery cannot be replayed: {problem}"));
    }
    let mut fates = vec![format!("then again after event {stop} of {} of the recovery", trace.events.len())];
    fates.extend(materialise(&replay.disk, Style::choose(random), random, target));
    Ok(fates)
}
