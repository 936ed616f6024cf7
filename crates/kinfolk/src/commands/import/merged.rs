//! Several files as one stream of lines `follower,followee[,since]`, one for each edge: read and checked in one thread,
//! uploaded in another. The stream fails, instead of ending, unless all files were read to their ends.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use kinfolk_core::Timestamp;
use kinfolk_core::bulk::Progress;
use kinfolk_core::graph::Edge;

use crate::input::{Location, Rules, Sink, Source, Stop};
use crate::progress::{READING, Reporter};

/// The size of a chunk.
const CHUNK_LEN: usize = 256 << 10;
/// How many chunks wait for the upload.
const CHUNKS_MAX: usize = 4;

/// A part of the stream, or its end.
enum Chunk {
    Lines(Vec<u8>),
    End,
}

/// What became of the files.
pub(super) struct MergedFiles {
    /// The number of edges of each file.
    pub(super) counts: Vec<u64>,
    /// The number of malformed lines that were skipped.
    pub(super) invalid: u64,
    /// Why a file was not read to its end; none if the upload ended first.
    pub(super) stopped: Option<Stop>,
}

/// The two ends of the stream.
pub(super) fn channel(sources: &[Source]) -> (MergedWriter, MergedReader) {
    let (sender, receiver) = sync_channel(CHUNKS_MAX);
    let bytes_read = Arc::new(AtomicU64::new(0));
    let bytes_total = sources.iter().map(Source::length).sum();
    let reader = MergedReader {
        receiver,
        chunk: io::Cursor::default(),
        is_complete: false,
        bytes_read: Arc::clone(&bytes_read),
        bytes_total,
    };
    (MergedWriter { sender, bytes_read }, reader)
}

/// The name of the edge in this line of the stream, counted from 1.
pub(super) fn edge_name(sources: &[Source], counts: &[u64], line: u64) -> Option<String> {
    let mut before = 0;
    for (source, count) in sources.iter().zip(counts) {
        if line <= before + count {
            return Some(format!("{}, edge {}", source.name(), line - before));
        }
        before += count;
    }
    None
}

/// The end that files are read into.
pub(super) struct MergedWriter {
    sender: SyncSender<Chunk>,
    bytes_read: Arc<AtomicU64>,
}

impl MergedWriter {
    /// Reads all files.
    pub(super) fn read_all(self, sources: &[Source], skip_invalid: bool) -> MergedFiles {
        let bytes_read = Cell::new(0);
        let mut sink = LineSink {
            writer: &self,
            bytes_read: &bytes_read,
            lines: Vec::with_capacity(CHUNK_LEN + 256),
            edges: 0,
            skip_invalid,
            invalid: 0,
            is_taken: true,
        };
        let (mut counts, mut stopped) = (Vec::new(), None);
        for source in sources {
            let before = sink.edges;
            let read = source.read(Rules::elsewhere(), &bytes_read, &mut sink);
            counts.push(sink.edges - before);
            if let Err(stop) = read {
                stopped = Some(stop);
                break;
            }
        }
        if stopped.is_none() && sink.send().is_ok() {
            // An upload that has ended already failed by itself.
            let _ = self.sender.send(Chunk::End);
        }
        MergedFiles { counts, invalid: sink.invalid, stopped: stopped.filter(|_| sink.is_taken) }
    }
}

/// Encodes edges as lines.
struct LineSink<'a> {
    writer: &'a MergedWriter,
    bytes_read: &'a Cell<u64>,
    lines: Vec<u8>,
    edges: u64,
    skip_invalid: bool,
    invalid: u64,
    /// Whether the upload goes on.
    is_taken: bool,
}

impl LineSink<'_> {
    fn send(&mut self) -> Result<(), Stop> {
        self.writer.bytes_read.store(self.bytes_read.get(), Ordering::Relaxed);
        let lines = std::mem::replace(&mut self.lines, Vec::with_capacity(CHUNK_LEN + 256));
        self.writer.sender.send(Chunk::Lines(lines)).map_err(|_| {
            self.is_taken = false;
            Stop::Unreadable(anyhow::anyhow!("the upload ended early"))
        })
    }
}

impl Sink for LineSink<'_> {
    fn edge(&mut self, Edge { follower, followee }: Edge, since: Option<Timestamp>) -> Result<(), Stop> {
        self.edges += 1;
        let line = match since {
            Some(since) => writeln!(self.lines, "{follower},{followee},{}", since.millis()),
            None => writeln!(self.lines, "{follower},{followee}"),
        };
        line.map_err(|error| Stop::Unreadable(error.into()))?;
        if self.lines.len() >= CHUNK_LEN { self.send() } else { Ok(()) }
    }

    fn malformed(&mut self, location: Location<'_>, reason: &str) -> Result<(), Stop> {
        if !self.skip_invalid {
            return Err(Stop::malformed(location, reason));
        }
        self.invalid += 1;
        Ok(())
    }
}

/// The end that is uploaded.
pub(super) struct MergedReader {
    receiver: Receiver<Chunk>,
    chunk: io::Cursor<Vec<u8>>,
    is_complete: bool,
    bytes_read: Arc<AtomicU64>,
    bytes_total: Option<u64>,
}

impl MergedReader {
    /// Reports how much of the files was read.
    pub(super) fn reporting(self, reporter: &Reporter) -> impl Read {
        ReportingReader { reader: self, reporter }
    }
}

impl Read for MergedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.chunk.read(buffer)?;
            if count > 0 || buffer.is_empty() || self.is_complete {
                return Ok(count);
            }
            match self.receiver.recv() {
                Ok(Chunk::Lines(lines)) => self.chunk = io::Cursor::new(lines),
                Ok(Chunk::End) => self.is_complete = true,
                Err(_) => return Err(io::Error::other("a file could not be read to its end")),
            }
        }
    }
}

struct ReportingReader<'a> {
    reader: MergedReader,
    reporter: &'a Reporter,
}

impl Read for ReportingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let (done, total) = (self.reader.bytes_read.load(Ordering::Relaxed), self.reader.bytes_total);
        self.reporter.report(Progress { stage: READING, done, total });
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Reads files with these contents; the stream and what became of them.
    fn merged(files: &[&str], skip_invalid: bool) -> (io::Result<String>, MergedFiles, Vec<Source>) {
        let folder = tempfile::tempdir().unwrap();
        let path = |at: usize| -> PathBuf { folder.path().join(format!("{at}.csv")) };
        let sources: Vec<Source> = files
            .iter()
            .enumerate()
            .map(|(at, text)| {
                std::fs::write(path(at), text).unwrap();
                Source::inspect(&path(at)).unwrap()
            })
            .collect();
        let (writer, mut reader) = channel(&sources);
        let (text, files) = std::thread::scope(|scope| {
            let files = scope.spawn(|| writer.read_all(&sources, skip_invalid));
            let mut text = String::new();
            let read = reader.read_to_string(&mut text).map(|_| text);
            (read, files.join().unwrap())
        });
        (text, files, sources)
    }

    #[test]
    fn files_of_different_forms_become_one() {
        let uuid = "00000000-0000-0000-0000-00000000000c";
        let (text, files, sources) = merged(
            &["from\tto\n1\t2\n# note\n", "", &format!("3,4,1970-01-01T00:00:00.005Z\n{uuid},5")],
            false,
        );
        assert_eq!(text.unwrap(), format!("1,2\n3,4,5\n{uuid},5\n"));
        assert_eq!((files.counts.as_slice(), files.invalid), (&[1, 0, 2][..], 0));
        let name = |line| edge_name(&sources, &files.counts, line);
        assert!(name(1).unwrap().ends_with("0.csv, edge 1"));
        assert!(name(3).unwrap().ends_with("2.csv, edge 2"));
        assert_eq!(name(4), None);
    }

    #[test]
    fn a_malformed_line_is_no_end() {
        let (text, files, _) = merged(&["1,2\n", "3,4\nx,y\n", "5,6\n"], false);
        assert!(text.is_err());
        assert!(matches!(files.stopped, Some(Stop::Malformed(detail)) if detail.contains("1.csv:2: ")));
        let (text, files, _) = merged(&["1,2\n", "3,4\nx,y\n", "5,6\n"], true);
        assert_eq!((text.unwrap().as_str(), files.invalid), ("1,2\n3,4\n5,6\n", 1));
    }
}
