//! Writes tables as CSV, plain or compressed, or as Parquet, to a stream or a file. `edges` and `comments` define the
//! columns.

mod comments;
mod csv;
mod edges;
mod file;
mod new_file;
mod parquet;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use kinfolk_server::FileFormat;

pub(crate) use comments::{Comments, HEADER as COMMENTS_HEADER};
pub(crate) use edges::{EdgeRow, Edges};
pub(crate) use file::OutputFile;
pub(crate) use new_file::write_new_file;

use csv::{CsvWriter, Lines};
use parquet::{Group, ParquetWriter};

use crate::input::format_of;
use crate::standard_output::StandardOutput;

/// The default of zstd's command line.
const ZSTD_LEVEL: i32 = 3;

/// A table: its columns in both formats.
pub(crate) trait Table: Copy {
    /// A row.
    type Row;
    /// Rows as CSV lines.
    type Lines: Lines<Row = Self::Row>;
    /// Rows as Parquet row groups.
    type Group: Group<Row = Self::Row>;

    /// For CSV.
    fn lines(self) -> Self::Lines;

    /// For Parquet.
    fn group(self) -> Self::Group;
}

/// Encodes rows into a stream.
pub(crate) enum Encoder<W: Write + Send, T: Table> {
    /// Lines.
    Csv(CsvWriter<Stream<W>, T::Lines>),
    /// Row groups.
    Parquet(ParquetWriter<W, T::Group>),
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
            return Ok(Self::Parquet(ParquetWriter::new(out, table.group())?));
        }
        let buffered = BufWriter::with_capacity(256 << 10, out);
        let stream = match format {
            FileFormat::CsvGzip => {
                Stream::Gzip(flate2::write::GzEncoder::new(buffered, flate2::Compression::default()))
            }
            FileFormat::CsvZstd => {
                let mut encoder = zstd::stream::write::Encoder::new(buffered, ZSTD_LEVEL)?;
                // As zstd's command line does, so that damage is detected.
                encoder.include_checksum(true)?;
                Stream::Zstd(encoder)
            }
            FileFormat::Csv | FileFormat::Parquet => Stream::Plain(buffered),
        };
        Ok(Self::Csv(CsvWriter::new(stream, table.lines())))
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

/// Writes a table to a file, which appears with [`FileWriter::finish`].
pub(crate) struct FileWriter<T: Table> {
    name: String,
    encoder: Encoder<Destination, T>,
}

/// A file or standard output.
enum Destination {
    StandardOutput(StandardOutput),
    File(OutputFile),
}

impl<T: Table> FileWriter<T> {
    /// Starts a file; `-` is standard output.
    pub(crate) fn create(path: &Path, table: T) -> Result<Self> {
        if path == Path::new("-") {
            let out = Destination::StandardOutput(StandardOutput::new());
            let encoder = Encoder::new(out, FileFormat::Csv, table)?;
            return Ok(Self { name: "standard output".to_owned(), encoder });
        }
        let name = path.display().to_string();
        let encoder = OutputFile::create(path)
            .map_err(anyhow::Error::from)
            .and_then(|file| Encoder::new(Destination::File(file), format_of(path), table))
            .with_context(|| format!("could not write {name}"))?;
        Ok(Self { name, encoder })
    }

    /// Adds a row.
    pub(crate) fn write(&mut self, row: &T::Row) -> Result<()> {
        self.encoder.write(row).with_context(|| format!("could not write {}", self.name))
    }

    /// Writes buffered rows, syncs the file and moves it to its path.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { name, encoder } = self;
        let finished = encoder.finish().and_then(|destination| Ok(destination.commit()?));
        finished.with_context(|| format!("could not write {name}"))
    }
}

impl Destination {
    fn commit(self) -> io::Result<()> {
        match self {
            Self::StandardOutput(mut out) => out.flush(),
            Self::File(file) => file.commit(),
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::StandardOutput(out) => out.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::StandardOutput(out) => out.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

impl<W: Write> Stream<W> {
    fn finish(self) -> io::Result<W> {
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
