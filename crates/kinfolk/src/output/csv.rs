//! Rows as CSV: a header, then one line per row; times in RFC 3339. The table defines the columns.

use std::io::{self, Write};

use kinfolk_core::{Id, Timestamp};

use super::table::{Table, Value};

/// The size of the buffer.
const BUFFER_LEN: usize = 64 << 10;

/// Writes lines into a stream.
pub(crate) struct CsvWriter<W, T> {
    out: W,
    buffer: Vec<u8>,
    table: T,
    last: TimeText,
}

/// The text of the last time: many edges of an import share one.
struct TimeText {
    time: Timestamp,
    text: String,
}

impl TimeText {
    fn new(time: Timestamp) -> Self {
        Self { time, text: time.to_string() }
    }
}

impl<W: Write, T: Table> CsvWriter<W, T> {
    /// Starts with the header.
    pub(crate) fn new(out: W, table: T) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_LEN + 256);
        buffer.extend_from_slice(table.header().as_bytes());
        buffer.push(b'\n');
        Self { out, buffer, table, last: TimeText::new(Timestamp::MIN) }
    }

    /// Appends a row.
    pub(crate) fn write(&mut self, row: &T::Row) -> io::Result<()> {
        let Self { buffer, last, .. } = self;
        let mut separator = None;
        self.table.visit(row, |value| {
            buffer.extend(separator.replace(b','));
            match value {
                Value::Missing => {}
                Value::Id(Id::Integer(value)) => push_decimal(buffer, value),
                Value::Id(id) => buffer.extend_from_slice(id.to_string().as_bytes()),
                Value::Number(number) => push_decimal(buffer, number.into()),
                Value::Time(time) => {
                    if last.time != time {
                        *last = TimeText::new(time);
                    }
                    buffer.extend_from_slice(last.text.as_bytes());
                }
                Value::Text(text) => push_text(buffer, &text),
            }
        });
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER_LEN {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes buffered rows; returns the stream.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&self.buffer)?;
        Ok(self.out)
    }
}

/// Appends text, quoted as RFC 4180 requires.
fn push_text(buffer: &mut Vec<u8>, text: &str) {
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

/// `fmt` would take longer than the rest of an export.
fn push_decimal(buffer: &mut Vec<u8>, value: u64) {
    buffer.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
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
    fn text_is_quoted_where_needed() {
        for (text, written) in
            [("a b", "a b"), ("a,b", "\"a,b\""), ("\"", "\"\"\"\""), ("x\ny \"z\"", "\"x\ny \"\"z\"\"\"")]
        {
            let mut buffer = Vec::new();
            push_text(&mut buffer, text);
            assert_eq!(String::from_utf8(buffer).unwrap(), written);
        }
    }
}
