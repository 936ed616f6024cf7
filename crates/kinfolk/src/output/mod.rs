//! Writes tables as CSV, plain or compressed, or as Parquet, to a stream or a file. `edges` and `comments` define their
//! columns. On standard output, CSV can become lines of JSON.

mod comments;
mod csv;
mod edges;
mod file;
mod json_lines;
mod new_file;
mod parquet;
mod table;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use kinfolk_server::FileFormat;

pub(crate) use comments::Comments;
pub(crate) use edges::{EdgeRow, Edges};
pub(crate) use file::OutputFile;
pub(crate) use new_file::write_new_file;
pub(crate) use table::Table;

use csv::CsvWriter;
use parquet::ParquetWriter;

/// The default of zstd's command line.
const ZSTD_LEVEL: i32 = 3;

/// Encodes rows into a stream.
pub(crate) enum Encoder<W: Write + Send, T: Table> {
    /// Lines.
    Csv(CsvWriter<Stream<W>, T>),
    /// Row groups.
    Parquet(ParquetWriter<W, T>),
}

/// A stream of CSV, plain or compressed.
pub(crate) enum Stream<W: Write> {
    Plain(BufWriter<W>),
    Gzip(flate2::write::GzEncoder<BufWriter<W>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<W>>),
}

impl<W: Write + Send, T: Table> Encoder<W, T> {
    /// Starts a stream.
    pub(crate) fn new(out: W, format: FileFormat, table: T) -> Result<Self> {
        if format == FileFormat::Parquet {
            return Ok(Self::Parquet(ParquetWriter::new(out, table)?));
        }
        Ok(Self::Csv(CsvWriter::new(Stream::new(out, format)?, table)))
    }

    /// Adds a row.
    pub(crate) fn write(&mut self, row: &T::Row) -> Result<()> {
        match self {
            Self::Csv(writer) => Ok(writer.write(row)?),
            Self::Parquet(writer) => writer.write(row),
        }
    }

    /// Writes buffered rows; returns the stream.
    pub(crate) fn finish(self) -> Result<W> {
        match self {
            Self::Csv(writer) => Ok(writer.finish()?.finish()?),
            Self::Parquet(writer) => writer.finish(),
        }
    }
}

/// What a failed write to a file says; `-` is standard output.
pub(crate) fn could_not_write(path: &Path) -> String {
    if path == Path::new("-") {
        return "could not write standard output".to_owned();
    }
    format!("could not write {}", path.display())
}

impl<W: Write> Stream<W> {
    /// Starts a stream of CSV.
    pub(crate) fn new(out: W, format: FileFormat) -> io::Result<Self> {
        let buffered = BufWriter::with_capacity(256 << 10, out);
        Ok(match format {
            FileFormat::CsvGzip => {
                Self::Gzip(flate2::write::GzEncoder::new(buffered, flate2::Compression::default()))
            }
            FileFormat::CsvZstd => {
                let mut encoder = zstd::stream::write::Encoder::new(buffered, ZSTD_LEVEL)?;
                // As zstd's command line does, so that damage is detected.
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            FileFormat::Csv | FileFormat::Parquet => Self::Plain(buffered),
        })
    }

    /// Writes buffered bytes; returns what is below.
    pub(crate) fn finish(self) -> io::Result<W> {
        let buffered = match self {
            Self::Plain(buffered) => buffered,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}
