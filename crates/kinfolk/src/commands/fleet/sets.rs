//! `fleet save-sets` and `fleet warm`: the following sets of all users in a file, and from there into Redis.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;

use super::super::prelude::*;
use crate::output::write_new_file;
use crate::profile::fleet::{FleetProfile, Warmed};

/// Write the following sets of all users to a file, for 'fleet warm'
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet save-sets --config fleet.toml sets\n\n\
    The file is for this fleet and its current epoch. It is useful until a shard has had 200,000 changes since, or its\n\
    log was trimmed past that point. An existing file is never replaced.")]
pub(crate) struct SaveSets {
    /// The file to create
    file: PathBuf,
}

impl SaveSets {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let (file, reporter) = (self.file.as_path(), &context.reporter);
        let sets = write_new_file(file, |out| {
            let saved = profile.save_sets(out, &|progress| reporter.report(progress));
            saved.with_context(|| format!("could not write {}", file.display()))
        })?;
        reporter.finish();
        context.print(&Saved { sets, file: file.display().to_string() })
    }
}

#[derive(Serialize)]
struct Saved {
    sets: u64,
    file: String,
}

impl Print for Saved {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "saved {} following sets to {}", grouped(self.sets), self.file)
    }
}

/// Put the following sets of a file into Redis
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet warm --config fleet.toml sets\n\n\
    For a Redis that is empty: the shards are spared from reading every set again. Processes that project bring the\n\
    changes since the file was made. Sets that are older than what Redis or the logs have are left out. The exit status is\n\
    1 if some sets could not be stored: run it again.")]
pub(crate) struct Warm {
    /// A file that 'fleet save-sets' has written
    file: PathBuf,
}

impl Warm {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let file =
            File::open(&self.file).with_context(|| format!("{} can't be read", self.file.display()))?;
        let warmed =
            profile.warm(&mut BufReader::new(file), &|progress| context.reporter.report(progress))?;
        let Warmed { stored, present, stale, failed } = warmed;
        context.print(&WarmedDocument { stored, present, stale, failed })?;
        Ok(if failed == 0 { Outcome::Done } else { Outcome::No })
    }
}

#[derive(Serialize)]
struct WarmedDocument {
    stored: u64,
    present: u64,
    stale: u64,
    failed: u64,
}

impl Print for WarmedDocument {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let [stored, present, stale, failed] =
            [self.stored, self.present, self.stale, self.failed].map(grouped);
        writeln!(
            out,
            "stored {stored} following sets; {present} were there already, {stale} are too old or too large, {failed} could not be stored"
        )
    }
}
