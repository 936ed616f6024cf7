//! Splits text into lines with one buffer and no allocation per line. `line` parses them.

use std::io::{self, Read};

use memchr::{memchr, memrchr};

use super::line::{LINE_LEN_MAX, LineParser, overlong};
use super::{Location, Rules, Sink, Stop};

/// The size of the buffer.
const BUFFER_LEN: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads one text file into a sink.
pub struct LineReader<'a, S> {
    lines: Lines<'a, S>,
    buffer: Vec<u8>,
    /// The length of the unparsed text in the buffer.
    filled: usize,
    /// Whether a byte order mark may follow.
    is_at_start: bool,
    /// Whether the rest of an overlong line is being skipped.
    is_skipping: bool,
}

impl<'a, S: Sink> LineReader<'a, S> {
    /// A reader of the file with this name.
    pub fn new(file: &'a str, rules: Rules, sink: &'a mut S) -> Self {
        let lines = Lines { file, parser: LineParser::new(rules), line: 1, sink };
        Self { lines, buffer: vec![0; BUFFER_LEN], filled: 0, is_at_start: true, is_skipping: false }
    }

    /// Reads to the end. `unreadable` converts an error of the input at a location.
    pub fn read(
        mut self,
        mut input: impl Read,
        unreadable: impl Fn(Location<'_>, io::Error) -> Stop,
    ) -> Result<(), Stop> {
        loop {
            match input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return self.finish(),
                Ok(count) => {
                    self.filled += count;
                    self.consume()?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(self.lines.location(), error)),
            }
        }
    }

    /// Parses all complete lines of the buffer and moves the rest to its front.
    fn consume(&mut self) -> Result<(), Stop> {
        let mut start = 0;
        if self.is_at_start {
            if self.filled < BYTE_ORDER_MARK.len() {
                return Ok(());
            }
            self.is_at_start = false;
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                start = BYTE_ORDER_MARK.len();
            }
        }
        if self.is_skipping {
            let end = memchr(b'\n', &self.buffer[..self.filled]);
            start = end.map_or(self.filled, |end| end + 1);
            self.is_skipping = end.is_none();
            self.lines.line += u64::from(end.is_some());
        }
        if let Some(last) = memrchr(b'\n', &self.buffer[start..self.filled]) {
            self.lines.parse(&self.buffer[start..=start + last])?;
            start += last + 1;
        }
        // One byte more may be the carriage return at the line's end.
        if self.filled - start > LINE_LEN_MAX + 1 {
            self.lines.malformed(&overlong())?;
            self.is_skipping = true;
            start = self.filled;
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(())
    }

    /// Parses the last line, which may lack a line end.
    fn finish(mut self) -> Result<(), Stop> {
        if self.filled == 0 || self.is_skipping {
            return Ok(());
        }
        // It fits: the rest of a line is far shorter than the buffer.
        self.buffer[self.filled] = b'\n';
        self.lines.parse(&self.buffer[..=self.filled])
    }
}

struct Lines<'a, S> {
    file: &'a str,
    parser: LineParser,
    /// The number of the next line.
    line: u64,
    sink: &'a mut S,
}

impl<'a, S: Sink> Lines<'a, S> {
    fn location(&self) -> Location<'a> {
        Location { file: self.file, line: self.line }
    }

    fn malformed(&mut self, reason: &str) -> Result<(), Stop> {
        let location = self.location();
        self.sink.malformed(location, reason)
    }

    /// Parses complete lines.
    fn parse(&mut self, mut text: &[u8]) -> Result<(), Stop> {
        while !text.is_empty() {
            if let Some(((edge, since), length)) = self.parser.quick(text) {
                self.sink.edge(edge, since)?;
                text = &text[length..];
            } else {
                let end = memchr(b'\n', text).unwrap_or(text.len());
                match self.parser.careful(&text[..end]) {
                    Ok(Some((edge, since))) => self.sink.edge(edge, since)?,
                    Ok(None) => {}
                    Err(reason) => self.malformed(&reason)?,
                }
                text = text.get(end + 1..).unwrap_or_default();
            }
            self.line += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::Edge;
    use kinfolk_core::{IdKind, Timestamp};

    use super::*;

    /// Records everything and continues after malformed lines.
    #[derive(Default, PartialEq, Debug)]
    struct Notes {
        edges: Vec<String>,
        malformed: Vec<String>,
    }

    impl Sink for Notes {
        fn edge(&mut self, edge: Edge, _: Option<Timestamp>) -> Result<(), Stop> {
            self.edges.push(format!("{}-{}", edge.follower, edge.followee));
            Ok(())
        }

        fn malformed(&mut self, location: Location<'_>, reason: &str) -> Result<(), Stop> {
            self.malformed.push(format!("{location}: {reason}"));
            Ok(())
        }
    }

    /// Returns a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn read(text: &[u8], bytes_at_once: usize) -> Notes {
        let mut notes = Notes::default();
        let rules = Rules::new(IdKind::Integer, Timestamp::from_millis(1_000));
        let reader = LineReader::new("f", rules, &mut notes);
        reader.read(Trickle(text, bytes_at_once), |_, error| panic!("{error}")).unwrap();
        notes
    }

    #[test]
    fn borders_of_reads_do_not_matter() {
        let long = "9".repeat(LINE_LEN_MAX + 2);
        let text = format!(
            "\u{feff}follower,followee\r\n1,2\n\n# x\n3,4\r\n{long}\n5,6,7\nbad\n{long}{long}\r\n8,9\n10,11"
        );
        let whole = read(text.as_bytes(), usize::MAX);
        assert_eq!(whole.edges, ["1-2", "3-4", "5-6", "8-9", "10-11"]);
        let locations: Vec<_> =
            whole.malformed.iter().map(|text| text.split(": ").next().unwrap_or_default()).collect();
        assert_eq!(locations, ["f:6", "f:8", "f:9"]);
        for bytes_at_once in [1, 2, 3, 7, 4_095, 4_096, 4_097, 10_000] {
            assert_eq!(read(text.as_bytes(), bytes_at_once), whole, "{bytes_at_once} bytes at once");
        }
    }

    #[test]
    fn the_end_may_be_anywhere() {
        for (text, edges) in [
            ("", &[][..]),
            ("\n", &[]),
            ("1", &[]),
            ("\u{feff}", &[]),
            ("1,2", &["1-2"]),
            ("1,2\r", &["1-2"]),
            ("1,2\n3,4", &["1-2", "3-4"]),
            ("1,2\n3,", &["1-2"]),
            (&format!("1,2\n#{}", "x".repeat(2 * LINE_LEN_MAX)), &["1-2"]),
        ] {
            for bytes_at_once in [1, usize::MAX] {
                assert_eq!(read(text.as_bytes(), bytes_at_once).edges, edges, "{text:?}");
            }
        }
    }

    #[test]
    fn the_longest_line_is_taken() {
        let comment = format!("#{}", "x".repeat(LINE_LEN_MAX - 1));
        for end in ["\n", "\r\n", ""] {
            let notes = read(format!("{comment}{end}").as_bytes(), usize::MAX);
            assert_eq!(notes.malformed, [""; 0]);
        }
        assert_eq!(read(format!("{comment}y").as_bytes(), 1).malformed.len(), 1);
    }
}
