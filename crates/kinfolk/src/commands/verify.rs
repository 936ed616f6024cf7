//! `verify`: a full pass over everything that is derived from edges, posts and comments.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::interrupt;

/// What `verify` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk verify --repair\n\n\
    The exit status is 1 if something differs and was not repaired.")]
pub struct Arguments {
    /// Bring what differs in line with the edges, posts and comments
    #[arg(long)]
    repair: bool,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let target = context.place.open()?;
        let report = target.verify(self.repair, &context.reporter)?;
        context.reporter.finish();
        target.close()?;
        let verified = Verified {
            edges: report.edges,
            users: report.users,
            difference_count: report.difference_count,
            differences: report.differences,
            repaired: report.repaired,
        };
        context.print(&verified)?;
        let is_sound = verified.difference_count == 0 || verified.repaired;
        Ok(if is_sound { Outcome::Done } else { Outcome::No })
    }
}

#[derive(Serialize)]
struct Verified {
    edges: u64,
    users: u64,
    difference_count: u64,
    /// The first of them.
    differences: Vec<String>,
    repaired: bool,
}

impl Answer for Verified {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        write_figures(
            out,
            &[
                ("edges", grouped(self.edges)),
                ("users", grouped(self.users)),
                ("differences", grouped(self.difference_count)),
            ],
        )?;
        for difference in &self.differences {
            writeln!(out, "- {difference}")?;
        }
        let unlisted = self.difference_count.saturating_sub(self.differences.len() as u64);
        if unlisted > 0 {
            writeln!(out, "- and {} more", grouped(unlisted))?;
        }
        if self.repaired {
            writeln!(out, "repaired")?;
        } else if self.difference_count > 0 {
            writeln!(out, "run 'kinfolk verify --repair' to repair")?;
        }
        Ok(())
    }
}
