//! Exports of a server, written to a file. The server encodes Parquet; text is compressed here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use anyhow::{Context as _, Result, anyhow, bail};
use kinfolk::input::{format_of, parquet_rows};
use kinfolk_api::{ExportContent, FileFormat};
use kinfolk_client::blocking;
use kinfolk_core::IdKind;
use kinfolk_core::bulk::Progress;

use super::ExportFile;
use crate::output::{Comments, Edges, OutputFile, Stream, Table, could_not_write};
use crate::progress::Reporter;

const UNREADABLE: &str = "could not read the server's response";

/// Writes an export to a file; returns the number of rows, unless it is Parquet in a pipe or device.
pub(super) fn write(
    server: &blocking::Client,
    content: ExportContent,
    file: ExportFile<'_>,
    reporter: &Reporter,
) -> Result<Option<u64>> {
    // The kind of ids does not matter for the names of the columns.
    let ids = IdKind::Integer;
    let header = match content {
        ExportContent::Edges => Edges { ids, since: true }.header(),
        ExportContent::Comments => Comments { ids }.header(),
    };
    let could_not = || could_not_write(file.path);
    let format = format_of(file.path);
    let wire = if format == FileFormat::Parquet { format } else { FileFormat::Csv };
    let input = server.export(content, wire)?;
    let out = OutputFile::create_rows(file.path, file.json).with_context(could_not)?;
    if format == FileFormat::Parquet {
        return copy_parquet(input, out).with_context(could_not);
    }
    let mut out = Stream::new(out, format).with_context(could_not)?;
    let rows = copy_csv(input, &header, &mut out, reporter).with_context(could_not)?;
    out.finish().and_then(OutputFile::commit).with_context(could_not)?;
    Ok(Some(rows))
}

/// Writes a Parquet file; returns the number of its rows, if the file can be read again.
fn copy_parquet(mut input: impl Read, mut out: OutputFile) -> Result<Option<u64>> {
    io::copy(&mut input, &mut out).and_then(|_| out.flush())?;
    // Only a file with its footer is complete.
    let rows = match out.content() {
        Some(content) => {
            let incomplete = || anyhow!("the export arrived incomplete and was discarded; run it again");
            Some(parquet_rows(File::open(content)?).ok_or_else(incomplete)?)
        }
        None => None,
    };
    out.commit()?;
    Ok(rows)
}

/// Writes CSV, whose first line must be this header; returns the number of rows.
fn copy_csv<W: Write>(
    input: impl Read,
    header: &str,
    out: &mut Stream<W>,
    reporter: &Reporter,
) -> Result<u64> {
    let mut input = BufReader::with_capacity(64 << 10, input);
    let mut first = Vec::new();
    input.by_ref().take(header.len() as u64 + 1).read_until(b'\n', &mut first).context(UNREADABLE)?;
    if first.strip_suffix(b"\n") != Some(header.as_bytes()) {
        bail!("the server's response does not have the expected columns");
    }
    out.write_all(&first)?;
    let mut rows = Rows::default();
    loop {
        let bytes = input.fill_buf().context(UNREADABLE)?;
        if bytes.is_empty() {
            break;
        }
        rows.count(bytes);
        out.write_all(bytes)?;
        let length = bytes.len();
        input.consume(length);
        reporter.report(Progress { stage: "exporting", done: rows.whole, total: None });
    }
    if rows.is_partial {
        bail!("the server's response was truncated");
    }
    Ok(rows.whole)
}

/// Counts rows of CSV: they end with the lines, except within quotes.
#[derive(Default)]
struct Rows {
    whole: u64,
    is_quoted: bool,
    is_partial: bool,
}

impl Rows {
    fn count(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.is_quoted ^= byte == b'"';
            self.is_partial = self.is_quoted || byte != b'\n';
            self.whole += u64::from(!self.is_partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(input: &str) -> Result<(u64, Vec<u8>)> {
        let mut out = Stream::new(Vec::new(), FileFormat::Csv)?;
        let rows = copy_csv(input.as_bytes(), "id,body", &mut out, &Reporter::silent())?;
        Ok((rows, out.finish()?))
    }

    #[test]
    fn rows_are_counted_across_quoted_line_ends() {
        for (text, rows) in [
            ("id,body\n", 0),
            ("id,body\n1,a\n", 1),
            ("id,body\n1,\"a\n\"\"b\"\"\nc\"\n2,\"\"\"\"\n3,\"\n\"\n", 3),
        ] {
            assert_eq!(copied(text).unwrap(), (rows, text.as_bytes().to_vec()), "{text}");
        }
    }

    #[test]
    fn truncated_and_foreign_responses_are_refused() {
        let whole = "id,body\n1,a\n2,\"b\n, \"\"c\"\"\n\"\n3,d\n";
        let ends: Vec<usize> = (0..whole.len()).filter(|&at| copied(&whole[..at]).is_ok()).collect();
        // Only where a line ends, which the transfer itself guards.
        assert_eq!(ends.len(), 3, "{ends:?}");
        for foreign in ["", "id", "id,bodies\n", "<html>\n"] {
            assert!(copied(foreign).is_err(), "{foreign}");
        }
    }
}
