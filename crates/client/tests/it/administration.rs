//! Administration of an embedded store, as far as the tests need it.

use std::io::{BufRead, BufReader, Read, Write};

use kinfolk_core::bulk::{BackupReport, ImportOptions, Progress, VerifyReport};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, IdKind, Result};
use kinfolk_embedded::Embedded;
use kinfolk_server::{Administration, ExportRequest, Import, ImportDone};

pub(crate) struct StoreAdministration(pub Embedded);

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Storage { detail: error.to_string() }
}

impl Administration for StoreAdministration {
    /// Lines of `follower,followee`; others are malformed.
    fn import(
        &self,
        file: &mut (dyn Read + Send),
        request: &Import,
        progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        let options = ImportOptions {
            kind: EdgeKind::Follow,
            following_limit: None,
            fingerprint: "a test".to_owned(),
            sort_memory: 1 << 20,
        };
        let mut import = self.0.import(&options)?;
        let mut invalid = 0;
        for line in BufReader::new(file).lines() {
            let line = line.map_err(failed)?;
            let ids = line.split_once(',').map(|(one, two)| [one, two].map(|id| IdKind::Integer.parse(id)));
            match ids {
                Some([Ok(follower), Ok(followee)]) => import.push(Edge { follower, followee }, None)?,
                _ if request.skip_invalid => invalid += 1,
                _ => return Err(Error::InvalidInput { detail: format!("malformed: {line}") }),
            }
        }
        let report = import.finish(progress)?;
        Ok(ImportDone { report, invalid })
    }

    fn export(&self, file: &mut (dyn Write + Send), _request: ExportRequest) -> Result<u64> {
        let mut count = 0;
        for edge in self.0.edges(EdgeKind::Follow)? {
            let (Edge { follower, followee }, _) = edge?;
            writeln!(file, "{follower},{followee}").map_err(failed)?;
            count += 1;
        }
        Ok(count)
    }

    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        self.0.verify(repair, progress)
    }

    fn backup(&self, file: &mut (dyn Write + Send), progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        self.0.backup(file, progress)
    }

    fn compact(&self) -> Result<u64> {
        self.0.compact()
    }
}
