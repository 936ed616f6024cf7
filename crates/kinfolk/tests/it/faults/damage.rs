//! Damage to files at rest: one bit flipped, a file cut short, a file gone. The folder must then hold everything
//! that was acknowledged or be refused with a reason; the test names file and place of any silent loss.
//!
//! The recorded run: `KINFOLK_FLIPS=2000 cargo test --release -p kinfolk --test it faults::damage -- --nocapture`

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::data::check::{Expected, Verdict, must_tell};
use super::data::history::History;
use super::data::workload::Workload;
use super::data::{End, Server};
use super::random::Random;
use super::{number, require_none, scratch, seed};

/// Rounds of requests before the damage.
const ROUNDS: usize = 130;

#[test]
fn damage_after_a_kill_is_never_silent() {
    damage_everything("damage after a kill", true);
}

#[test]
fn damage_after_a_clean_close_is_never_silent() {
    damage_everything("damage after a clean close", false);
}

/// What is done to one file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip { offset: usize, bit: u8 },
    Cut { length: usize },
    Delete,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip { offset, bit } => write!(out, "bit {bit} of byte {offset} flipped"),
            Self::Cut { length } => write!(out, "cut to {length} bytes"),
            Self::Delete => write!(out, "deleted"),
        }
    }
}

/// A folder as a process left it, and what it must hold.
struct Specimen {
    files: BTreeMap<PathBuf, Vec<u8>>,
    folders: Vec<PathBuf>,
    history: History,
}

fn damage_everything(test: &str, killed: bool) {
    let seed = seed(test);
    let mut random = Random::new(seed).fork(u64::from(killed));
    let specimen = Specimen::grow(&mut random, killed);
    let flips = number("KINFOLK_FLIPS", 80) / 2;
    let cases = specimen.cases(&mut random, flips);
    let mut violations = Vec::new();
    let (mut intact, mut refused) = (0, 0);
    for (file, damage) in &cases {
        match specimen.try_damage(file, *damage, &mut random) {
            Ok(Verdict::Intact) => intact += 1,
            Ok(Verdict::Refused) => refused += 1,
            Err(problem) => violations.push(format!("{} {damage}: {problem}", file.display())),
        }
    }
    println!(
        "{test}: {} cases in {} files, {intact} intact, {refused} refused with a reason, {} violations",
        cases.len(),
        specimen.files.len(),
        violations.len()
    );
    require_none(test, &violations);
}

impl Specimen {
    /// Writes enough for several log segments and flushes, and ends as told.
    fn grow(random: &mut Random, killed: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        let (mut history, mut workload) = (History::default(), Workload::new(random.fork(1)));
        let server = Server::on(&data).expect("an undisturbed server starts");
        server.write(&mut history, &mut workload, ROUNDS).expect("an undisturbed run succeeds");
        if killed {
            let delay = Duration::from_micros(random.below(3_000) as u64);
            server.round_and_kill(&mut history, &mut workload, delay).expect("every answer is right");
        } else {
            server.end(End::InOrder).require_success("serving").expect("it ends in order");
        }
        let (mut files, mut folders) = (BTreeMap::new(), Vec::new());
        read_folder(&data, Path::new(""), &mut files, &mut folders);
        Self { files, folders, history }
    }

    /// Flips spread over files, over bytes, and over the small files, which say what the others mean; some cuts; every file
    /// deleted once.
    fn cases(&self, random: &mut Random, flips: usize) -> Vec<(PathBuf, Damage)> {
        const SMALL: usize = 2_048;
        let filled = self.files.iter().map(|(path, bytes)| (path, bytes.len()));
        let filled: Vec<(&PathBuf, usize)> = filled.filter(|&(_, length)| length > 0).collect();
        let small: Vec<_> = filled.iter().copied().filter(|&(_, length)| length <= SMALL).collect();
        let mut cases = Vec::new();
        for number in 0..flips {
            let (file, length) = match number % 4 {
                0 => filled[weighted_choice(random, &filled)],
                1 if !small.is_empty() => small[random.below(small.len())],
                _ => filled[number / 2 % filled.len()],
            };
            let offset = match random.below(4) {
                0 => random.below(length.min(24)),
                1 => length - 1 - random.below(length.min(24)),
                _ => random.below(length),
            };
            let bit = u8::try_from(random.below(8)).expect("a byte has eight bits");
            cases.push((file.clone(), Damage::Flip { offset, bit }));
        }
        for &(file, length) in &filled {
            for _ in 0..flips.div_ceil(filled.len() * 4) {
                cases.push((file.clone(), Damage::Cut { length: random.below(length) }));
            }
            // The nastiest cuts: nothing left, one byte gone.
            cases
                .push((file.clone(), Damage::Cut { length: if random.once_in(2) { 0 } else { length - 1 } }));
        }
        cases.extend(self.files.keys().map(|file| (file.clone(), Damage::Delete)));
        cases
    }

    fn try_damage(&self, file: &Path, damage: Damage, random: &mut Random) -> Result<Verdict, String> {
        let folder = scratch();
        let data = folder.path().join("data");
        self.write_to(&data);
        let target = data.join(file);
        let mut bytes = self.files[file].clone();
        match damage {
            Damage::Flip { offset, bit } => bytes[offset] ^= 1 << bit,
            Damage::Cut { length } => bytes.truncate(length),
            Damage::Delete => {}
        }
        match damage {
            Damage::Delete => fs::remove_file(&target),
            _ => fs::write(&target, bytes),
        }
        .expect("a copied file can be damaged");
        must_tell(&data, &Expected::all(&self.history), random)
    }

    fn write_to(&self, data: &Path) {
        fs::create_dir(data).expect("a new folder");
        for folder in &self.folders {
            fs::create_dir(data.join(folder)).expect("a new folder");
        }
        for (path, bytes) in &self.files {
            fs::write(data.join(path), bytes).expect("a copied file");
        }
    }
}

/// An index, chosen by length.
fn weighted_choice(random: &mut Random, files: &[(&PathBuf, usize)]) -> usize {
    let total: usize = files.iter().map(|(_, length)| length).sum();
    let mut left = random.below(total);
    files
        .iter()
        .position(|(_, length)| {
            let here = left < *length;
            left = left.saturating_sub(*length);
            here
        })
        .expect("the lengths add up to the total")
}

/// Collects files and folders, parents first, with paths relative to `root`.
fn read_folder(
    root: &Path,
    below: &Path,
    files: &mut BTreeMap<PathBuf, Vec<u8>>,
    folders: &mut Vec<PathBuf>,
) {
    for entry in fs::read_dir(root.join(below)).expect("the folder can be read") {
        let entry = entry.expect("the folder can be read");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            folders.push(path.clone());
            read_folder(root, &path, files, folders);
        } else {
            files.insert(path, fs::read(entry.path()).expect("the file can be read"));
        }
    }
}
