//! `verify`: compares all derived data with the edges, posts and comments.

use kinfolk_api::VerifyOutcome;

use super::prelude::*;

/// Compare all derived data with the edges, posts and comments
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk verify --repair\n\n\
    The exit status is 1 if there are differences that were not repaired.")]
pub(crate) struct Verify {
    /// Repair differences
    #[arg(long)]
    repair: bool,
}

impl Verify {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let reporter = &context.reporter;
        let outcome: VerifyOutcome = context.call(|client| match client {
            Client::Local(graph) => {
                let report = |progress| reporter.report(progress);
                Ok(graph.administration().verify(self.repair, &report)?.into())
            }
            Client::Remote(server) => {
                Ok(server.verify(self.repair, |progress| reporter.report_remote(progress))?)
            }
        })?;
        reporter.finish();
        let verified = Verified {
            edges: outcome.edges,
            users: outcome.users,
            difference_count: outcome.differences,
            differences: outcome.examples,
            repaired: outcome.repaired,
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

impl Print for Verified {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        write_stats(
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
