//! CSV as lines of JSON, for `--json` on standard output: an object for each row, its names from the header. Ids, times and
//! texts are strings, as everywhere in JSON; missing values are left out.

use std::io::{self, Write};

use serde_json::Value;

/// The columns of numbers that are no ids.
const NUMBERS: [&str; 2] = ["depth", "version"];

/// Converts what is written to it.
pub(crate) struct JsonLines<W> {
    out: W,
    names: Vec<String>,
    /// The fields of the current row, the last one unfinished.
    row: Vec<Vec<u8>>,
    is_quoted: bool,
    /// Whether the last byte was a quote within quotes: the end of the field, or the first half of a quote in it.
    is_after_quote: bool,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, names: Vec::new(), row: vec![Vec::new()], is_quoted: false, is_after_quote: false }
    }

    fn take(&mut self, byte: u8) -> io::Result<()> {
        let was_after_quote = std::mem::take(&mut self.is_after_quote);
        match byte {
            b'"' if was_after_quote => {
                self.is_quoted = true;
                self.push(byte);
            }
            b'"' => {
                self.is_after_quote = self.is_quoted;
                self.is_quoted = !self.is_quoted;
            }
            b',' if !self.is_quoted => self.row.push(Vec::new()),
            b'\n' if !self.is_quoted => self.end_row()?,
            _ => self.push(byte),
        }
        Ok(())
    }

    fn push(&mut self, byte: u8) {
        if let Some(field) = self.row.last_mut() {
            field.push(byte);
        }
    }

    fn end_row(&mut self) -> io::Result<()> {
        let row = std::mem::replace(&mut self.row, vec![Vec::new()]);
        let fields = row.into_iter().map(|field| String::from_utf8(field).map_err(io::Error::other));
        let fields = fields.collect::<io::Result<Vec<String>>>()?;
        if self.names.is_empty() {
            self.names = fields;
            return Ok(());
        }
        // Written by hand, because a map would sort the names.
        let mut separator = "{";
        for (name, field) in self.names.iter().zip(fields).filter(|(_, field)| !field.is_empty()) {
            write!(self.out, "{separator}{}:{}", Value::from(name.as_str()), value(name, field))?;
            separator = ",";
        }
        self.out.write_all(if separator == "{" { b"{}\n" } else { b"}\n" })
    }
}

fn value(name: &str, field: String) -> Value {
    let number = NUMBERS.contains(&name).then(|| field.parse::<u64>().ok()).flatten();
    number.map_or_else(|| field.into(), Value::from)
}

impl<W: Write> Write for JsonLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.iter().try_for_each(|&byte| self.take(byte))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_objects() {
        let csv = "id,body,depth\n1,\"a \"\"b\"\",\n\",0\n2,,3\n,,\n";
        for at_once in [1, 2, csv.len()] {
            let mut lines = JsonLines::new(Vec::new());
            csv.as_bytes().chunks(at_once).for_each(|bytes| lines.write_all(bytes).unwrap());
            assert_eq!(
                String::from_utf8(lines.out).unwrap(),
                "{\"id\":\"1\",\"body\":\"a \\\"b\\\",\\n\",\"depth\":0}\n{\"id\":\"2\",\"depth\":3}\n{}\n",
                "{at_once} bytes at once"
            );
        }
    }
}
