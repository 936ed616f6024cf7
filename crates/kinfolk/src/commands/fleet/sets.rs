//! `fleet save-sets` and `fleet warm`: the following sets of all users in a file, and from there into Redis.

use std::fs::File;
use std::io::BufReader;

use anyhow::Context as _;

use super::super::prelude::*;
use super::arguments::{SaveSets, Warm};
use crate::output::write_new_file;
use crate::profile::fleet::{FleetProfile, Warmed};

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
