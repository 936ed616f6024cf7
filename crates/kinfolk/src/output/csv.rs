//! Edges as CSV: a header, then one line an edge; times in RFC 3339.

use std::io::{self, Write};

use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, Timestamp};

use super::Columns;

/// How much text is collected before it is handed on.
const BUFFER_LEN: usize = 64 << 10;

/// Writes lines into a stream.
pub struct CsvWriter<W> {
    out: W,
    buffer: Vec<u8>,
    since: Option<SinceText>,
}

/// The text of the last `since`: an import gives many edges the same one.
struct SinceText {
    since: Timestamp,
    text: String,
}

impl<W: Write> CsvWriter<W> {
    /// Begins with the header.
    pub fn new(out: W, columns: Columns) -> io::Result<Self> {
        let mut buffer = Vec::with_capacity(BUFFER_LEN + 256);
        let header = if columns.since { "follower,followee,since\n" } else { "follower,followee\n" };
        buffer.extend_from_slice(header.as_bytes());
        let first = Timestamp::MIN;
        let since = columns.since.then(|| SinceText { since: first, text: first.to_string() });
        Ok(Self { out, buffer, since })
    }

    /// Adds a line.
    pub fn write(&mut self, edge: Edge, since: Timestamp) -> io::Result<()> {
        push_id(&mut self.buffer, edge.follower);
        self.buffer.push(b',');
        push_id(&mut self.buffer, edge.followee);
        if let Some(last) = &mut self.since {
            if last.since != since {
                *last = SinceText { since, text: since.to_string() };
            }
            self.buffer.push(b',');
            self.buffer.extend_from_slice(last.text.as_bytes());
        }
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER_LEN {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Hands on what is left.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.out.write_all(&self.buffer)?;
        Ok(self.out)
    }
}

fn push_id(buffer: &mut Vec<u8>, id: Id) {
    match id {
        Id::Integer(value) => push_decimal(buffer, value),
        Id::Uuid(_) => buffer.extend_from_slice(id.to_string().as_bytes()),
    }
}

/// Formatting through `fmt` would take longer than everything else in an export.
fn push_decimal(buffer: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    buffer.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use kinfolk_core::IdKind;

    use super::*;

    #[test]
    fn decimals_are_written_as_they_are_printed() {
        for value in [0, 9, 10, 12_345, i64::MAX as u64, u64::MAX] {
            let mut buffer = Vec::new();
            push_decimal(&mut buffer, value);
            assert_eq!(String::from_utf8(buffer).unwrap(), value.to_string());
        }
    }

    #[test]
    fn lines() {
        let edges = [(1, 2, 5), (1, 3, 5), (2, 1, 6)];
        for (since, text) in [
            (false, "follower,followee\n1,2\n1,3\n2,1\n"),
            (
                true,
                "follower,followee,since\n1,2,1970-01-01T00:00:00.005Z\n1,3,1970-01-01T00:00:00.005Z\n\
                 2,1,1970-01-01T00:00:00.006Z\n",
            ),
        ] {
            let mut writer = CsvWriter::new(Vec::new(), Columns { ids: IdKind::Integer, since }).unwrap();
            for (follower, followee, at) in edges {
                let edge = Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
                writer.write(edge, Timestamp::from_millis(at)).unwrap();
            }
            assert_eq!(String::from_utf8(writer.into_inner().unwrap()).unwrap(), text);
        }
    }
}
