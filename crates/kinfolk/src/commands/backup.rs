//! `backup`: writes the whole graph to one file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use kinfolk_api::BackupOutcome;
use kinfolk_client::blocking;
use kinfolk_core::bulk::BackupReport;

use super::prelude::*;
use crate::output::write_new_file;
use crate::profile::inspect_backup;
use crate::progress::{ReadProgress, Reporter};

/// Write the whole graph to a file for restore
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk backup graph.backup\n\nAn existing file is never replaced.")]
pub(crate) struct Backup {
    /// The file to create
    file: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let (file, reporter) = (self.file.as_path(), &context.reporter);
        let report = context.call(|client| match client {
            Client::Local(graph) => write_new_file(file, |out| {
                let written = graph.administration().backup(out, &|progress| reporter.report(progress));
                written.with_context(|| format!("could not write {}", file.display()))
            }),
            Client::Remote(server) => download(server, file, reporter),
        })?;
        reporter.finish();
        context.print(&BackupOutcome::from(report))
    }
}

fn download(server: &blocking::Client, file: &Path, reporter: &Reporter) -> Result<BackupReport> {
    write_new_file(file, |out| {
        let download = server.backup()?;
        let length = download.content_length();
        let mut download = ReadProgress::new(download, length, reporter);
        let incomplete = "the backup arrived incomplete and was discarded; run it again";
        io::copy(&mut download, out).and_then(|_| out.flush()).context(incomplete)?;
        // Only a backup with its last block is complete: read it before keeping it.
        let content = out.content().ok_or_else(|| anyhow!("it is not a regular file"))?;
        inspect_backup(content).context(incomplete)
    })
}

/// The contents of a backup.
impl Print for BackupOutcome {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        write_stats(
            out,
            &[
                ("edges", grouped(self.edges)),
                ("posts", grouped(self.posts)),
                ("comments", grouped(self.comments)),
                ("position", self.position.to_string()),
                ("bytes", grouped(self.bytes)),
            ],
        )
    }
}
