//! Edges as a server exports them: CSV, written in the format of the file.

use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use kinfolk_api::FileFormat;
use kinfolk_core::bulk::Progress;
use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Timestamp};

use crate::input::{Location, Rules, Sink, Stop, Text};
use crate::output::{EdgeRow, Edges, FileWriter};
use crate::progress::Reporter;

/// How many edges pass between two reports of progress.
const REPORT_EDGES: u64 = 1 << 18;

/// Writes the edges in `lines` to a file; returns their number.
pub(crate) fn write(mut lines: impl Read, file: &Path, reporter: &Reporter) -> Result<u64> {
    let mut start = vec![0; 4_096];
    let length = read_fully(&mut lines, &mut start).context("could not read the server's response")?;
    start.truncate(length);
    let ids = id_kind(&start);
    let writer = FileWriter::create(file, Edges { ids, since: true })?;
    let mut sink = FileSink { writer, edges: 0, failure: None, reporter };
    let text = Text { name: "the server's response", format: FileFormat::Csv };
    let rules = Rules { ids, since_max: Timestamp::MAX };
    let read = text.read(start.as_slice().chain(lines), rules, &mut sink);
    match (read, sink.failure) {
        (_, Some(error)) => Err(error),
        (Err(Stop::Malformed(detail)), None) => Err(anyhow!(detail)),
        (Err(Stop::Unreadable(error)), None) => Err(error),
        (Err(Stop::Refused(error)), None) => Err(error.into()),
        (Ok(()), None) => sink.writer.finish().map(|()| sink.edges),
    }
}

/// The kind of ids, by the first edge.
fn id_kind(start: &[u8]) -> IdKind {
    let first_edge = start.split(|&byte| byte == b'\n').nth(1).unwrap_or_default();
    let first_id = first_edge.split(|&byte| byte == b',').next().unwrap_or_default();
    if first_id.contains(&b'-') { IdKind::Uuid } else { IdKind::Integer }
}

fn read_fully(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Writes edges to a file.
struct FileSink<'a> {
    writer: FileWriter<Edges>,
    edges: u64,
    /// Why the file could not be written.
    failure: Option<anyhow::Error>,
    reporter: &'a Reporter,
}

impl Sink for FileSink<'_> {
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop> {
        self.edges += 1;
        if self.edges.is_multiple_of(REPORT_EDGES) {
            self.reporter.report(Progress { stage: "exporting", done: self.edges, total: None });
        }
        let row = EdgeRow { edge, since: since.unwrap_or(Timestamp::MIN) };
        self.writer.write(&row).map_err(|error| {
            self.failure = Some(error);
            Stop::Malformed("could not write the file".to_owned())
        })
    }

    fn malformed(&mut self, location: Location<'_>, reason: &str) -> Result<(), Stop> {
        Err(Stop::malformed(location, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_edge_decides_the_kind_of_ids() {
        for (start, kind) in [
            ("", IdKind::Integer),
            ("follower,followee,since\n", IdKind::Integer),
            ("follower,followee,since\n1,2,2026-01-01T00:00:00.000Z\n", IdKind::Integer),
            ("follower,followee,since\n0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,", IdKind::Uuid),
        ] {
            assert_eq!(id_kind(start.as_bytes()), kind, "{start}");
        }
    }
}
