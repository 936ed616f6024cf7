//! Files of edges as text: every line is an edge, nothing, or malformed at its place, however the file is read.

use std::io::{self, Read};

use kinfolk::input::{LineReader, Location, Rules, Sink, Stop};
use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Timestamp};

/// A moment in 2026.
const NOW_MILLIS: u64 = 1_794_729_600_000;

/// Reads the input as a file of each kind of ids, at once and in parts.
pub fn import_lines(input: &[u8]) {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let rules = Rules::new(ids, Timestamp::from_millis(NOW_MILLIS));
        let whole = read(input, rules, usize::MAX);
        for part in [1, 2, 7, 4_097] {
            assert_eq!(read(input, rules, part), whole, "{part} bytes at once");
        }
        let lines = input.split(|&byte| byte == b'\n').count() as u64;
        assert!(whole.edges.len() as u64 + whole.malformed.len() as u64 <= lines);
        assert!(
            whole.malformed.iter().all(|(line, reason)| (1..=lines).contains(line) && !reason.is_empty())
        );
        assert!(whole.malformed.is_sorted_by(|one, next| one.0 < next.0));
        assert!(whole.edges.iter().all(|(_, since)| since.is_none_or(|since| since <= rules.since_max)));
        is_the_same_again(&whole, rules);
    }
}

/// Edges that are written as a file are the same edges.
fn is_the_same_again(notes: &Notes, rules: Rules) {
    let mut text = String::from("follower,followee,since\n");
    for (Edge { follower, followee }, since) in &notes.edges {
        text.push_str(&format!("{follower},{followee}"));
        if let Some(since) = since {
            text.push_str(&format!(",{since}"));
        }
        text.push('\n');
    }
    let again = read(text.as_bytes(), rules, usize::MAX);
    assert_eq!((again.edges, again.malformed), (notes.edges.clone(), Vec::new()));
}

fn read(input: &[u8], rules: Rules, part: usize) -> Notes {
    let mut notes = Notes::default();
    let read =
        LineReader::new("file", rules, &mut notes).read(Parts(input, part), |_, error| panic!("{error}"));
    read.unwrap();
    notes
}

/// Notes everything, goes on after malformed lines.
#[derive(Default, Debug, PartialEq)]
struct Notes {
    edges: Vec<(Edge, Option<Timestamp>)>,
    malformed: Vec<(u64, String)>,
}

impl Sink for Notes {
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop> {
        self.edges.push((edge, since));
        Ok(())
    }

    fn malformed(&mut self, location: Location<'_>, reason: &str) -> Result<(), Stop> {
        self.malformed.push((location.line, reason.to_owned()));
        Ok(())
    }
}

/// Gives so many bytes at a time.
struct Parts<'a>(&'a [u8], usize);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}
