//! Rows as CSV: a header, then one line a row; times in RFC 3339. Which columns there are is the table's business.

use std::io::{self, Write};

use kinfolk_core::Id;

/// How much text is collected before it is handed on.
const BUFFER_LEN: usize = 64 << 10;

/// How the rows of a table become lines.
pub trait Lines {
    /// A row.
    type Row;

    /// The names of the columns, with commas between them.
    fn header(&self) -> &'static str;

    /// Adds a row without its line end.
    fn push(&mut self, row: &Self::Row, buffer: &mut Vec<u8>);
}

/// Writes lines into a stream.
pub struct CsvWriter<W, L> {
    out: W,
    buffer: Vec<u8>,
    lines: L,
}

impl<W: Write, L: Lines> CsvWriter<W, L> {
    /// Begins with the header.
    pub fn new(out: W, lines: L) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_LEN + 256);
        buffer.extend_from_slice(lines.header().as_bytes());
        buffer.push(b'\n');
        Self { out, buffer, lines }
    }

    /// Adds a line.
    pub fn write(&mut self, row: &L::Row) -> io::Result<()> {
        self.lines.push(row, &mut self.buffer);
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

/// Adds an id.
pub fn push_id(buffer: &mut Vec<u8>, id: Id) {
    match id {
        Id::Integer(value) => push_decimal(buffer, value),
        Id::Uuid(_) => buffer.extend_from_slice(id.to_string().as_bytes()),
    }
}

/// Adds text that anybody may have written: in quotes where it needs them, as RFC 4180 says.
pub fn push_text(buffer: &mut Vec<u8>, text: &str) {
    if !text.contains([',', '"', '\n', '\r']) {
        return buffer.extend_from_slice(text.as_bytes());
    }
    buffer.push(b'"');
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            buffer.extend_from_slice(b"\"\"");
        }
        buffer.extend_from_slice(part.as_bytes());
    }
    buffer.push(b'"');
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
    fn text_stands_in_quotes_where_it_needs_them() {
        for (text, written) in
            [("a b", "a b"), ("a,b", "\"a,b\""), ("\"", "\"\"\"\""), ("x\ny \"z\"", "\"x\ny \"\"z\"\"\"")]
        {
            let mut buffer = Vec::new();
            push_text(&mut buffer, text);
            assert_eq!(String::from_utf8(buffer).unwrap(), written);
        }
    }
}
