//! `compact`: compacts all files, and erases purged comments from them.

use std::time::Instant;

use super::prelude::*;

/// Compact all files and erase the bodies of purged comments
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk compact\n\n\
    Compacts the files of rows, posts and comments, and erases the bodies of purged comments, also from the change log.\n\
    A server does both in the background. Needs about as much free disk space as the files take.")]
pub(crate) struct Compact {}

impl Compact {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let erased = context.call(|client| match client {
            Client::Local(graph) => Ok(graph.administration().compact()?),
            Client::Remote(server) => {
                Ok(server.compact(|progress| context.reporter.report_remote(progress))?.erased)
            }
        })?;
        context.reporter.finish();
        context.print(&Compacted { erased, seconds: begin.elapsed().as_secs_f64() })
    }
}

#[derive(Serialize)]
struct Compacted {
    /// Purged comments whose bodies were erased.
    erased: u64,
    seconds: f64,
}

impl Print for Compacted {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = format!("{:.2}", self.seconds);
        write_stats(out, &[("comments erased", grouped(self.erased)), ("seconds", seconds)])
    }
}
