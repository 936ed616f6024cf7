//! Administration that does as the test wants, for servers of both protocols.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kinfolk_core::bulk::{BackupReport, ImportReport, Progress, VerifyReport};
use kinfolk_core::{Error, Id, Result, Sequence, Shard};
use kinfolk_server::{
    Administration, ExportContent, ExportRequest, FileFormat, Import, ImportDone, NumberedUsers, Stat,
    StatKind,
};

/// How large an export of the tests is.
pub(crate) const FILE_BYTES: usize = 4 << 20;

/// Does what the request or the file says.
#[derive(Default)]
pub(crate) struct Scripted {
    /// Somebody has cut a backup short.
    pub cut_short: AtomicBool,
    /// How often files were merged.
    pub compactions: AtomicUsize,
    /// Figures are not to be had.
    pub stats_panic: AtomicBool,
    /// The store can't go on.
    pub has_failed: AtomicBool,
    /// Others should get the requests.
    pub is_not_ready: AtomicBool,
    /// All users by number, if the store knows them.
    pub users: Option<Vec<Id>>,
}

impl Administration for Scripted {
    fn failure(&self) -> Option<String> {
        self.has_failed.load(Ordering::Acquire).then(|| "/var/lib/secret".to_owned())
    }

    fn users(&self, from: u32, limit: usize) -> Result<NumberedUsers> {
        let users = self.users.as_ref().ok_or(Error::NotAvailable { what: "iterating over all keys" })?;
        let users = users.iter().skip(from as usize).take(limit).copied().collect();
        Ok(NumberedUsers { numbering: u64::MAX, users })
    }

    fn set_count(&self) -> Option<u64> {
        self.users.as_ref().map(|users| users.len() as u64)
    }

    fn not_ready(&self) -> Option<String> {
        self.is_not_ready.load(Ordering::Acquire).then(|| "synchronize the clocks".to_owned())
    }

    fn stats(&self) -> Vec<Stat> {
        assert!(!self.stats_panic.load(Ordering::Acquire), "as the test wants");
        vec![Stat { name: "kinfolk_test", help: "one", kind: StatKind::Gauge, of: None, value: 1.0 }]
    }

    /// Counts the lines; a line "bad" is malformed, and "panic" makes it panic.
    fn import(
        &self,
        file: &mut (dyn Read + Send),
        request: &Import,
        progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        let position = Sequence(1).on(Shard::ONLY);
        let report = ImportReport { frontier: position.into(), ..ImportReport::default() };
        let mut outcome = ImportDone { report, invalid: 0 };
        let detail = |error: io::Error| Error::InvalidInput { detail: error.to_string() };
        for line in BufReader::new(file).lines() {
            match line.map_err(detail)?.as_str() {
                "bad" if request.skip_invalid => outcome.invalid += 1,
                "bad" => return Err(Error::InvalidInput { detail: "line: it is bad".to_owned() }),
                "panic" => panic!("as the file says"),
                _ => outcome.report.added += 1,
            }
            progress(Progress { stage: "reading", done: outcome.report.added, total: None });
        }
        progress(Progress { stage: "loading", done: 1, total: Some(1) });
        Ok(outcome)
    }

    /// A large file of edges, a small one of comments. Parquet fails in the middle, and zstd before the first byte.
    fn export(&self, file: &mut (dyn Write + Send), request: ExportRequest) -> Result<u64> {
        if request.content == ExportContent::Comments {
            file.write_all(b"id,body\n").map_err(|error| Error::Storage { detail: error.to_string() })?;
            return Ok(0);
        }
        if request.format == FileFormat::CsvZstd {
            return Err(Error::Storage { detail: "no".to_owned() });
        }
        let lines = FILE_BYTES / 4;
        for at in 0..lines {
            if at == lines / 2 && request.format == FileFormat::Parquet {
                return Err(Error::Storage { detail: "half of it".to_owned() });
            }
            file.write_all(b"1,2\n").map_err(|error| Error::Storage { detail: error.to_string() })?;
        }
        Ok(lines as u64)
    }

    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        progress(Progress { stage: "comparing", done: 0, total: Some(9) });
        let differences = vec!["something".to_owned()];
        Ok(VerifyReport { edges: 9, users: 3, difference_count: 1, differences, repaired: repair })
    }

    /// As if a comment more had been purged each time.
    fn compact(&self) -> Result<u64> {
        Ok(self.compactions.fetch_add(1, Ordering::AcqRel) as u64)
    }

    /// Goes on for as long as somebody reads.
    fn backup(&self, file: &mut (dyn Write + Send), _progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        loop {
            if let Err(error) = file.write_all(&[7; 1_000]) {
                self.cut_short.store(true, Ordering::Release);
                return Err(Error::Storage { detail: error.to_string() });
            }
        }
    }
}
