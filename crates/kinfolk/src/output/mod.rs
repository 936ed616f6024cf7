//! Writing edges: CSV, plain or compressed, or Parquet, into any stream; and into files by the ending of their name.

mod csv;
mod file;
mod parquet;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Timestamp};
use kinfolk_server::FileFormat;

pub use file::OutputFile;

use csv::CsvWriter;
use parquet::ParquetWriter;

use crate::input::format_of;

/// The level of zstd's own command line.
const ZSTD_LEVEL: i32 = 3;

/// What the columns of a file are.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The kind of ids.
    pub ids: IdKind,
    /// Whether there is a third column, `since`.
    pub since: bool,
}

/// Edges on their way into a stream, in some format.
pub enum EdgeEncoder<W: Write + Send> {
    /// Lines.
    Csv(CsvWriter<Stream<W>>),
    /// Row groups.
    Parquet(ParquetWriter<W>),
}

/// Where CSV goes.
pub enum Stream<W: Write> {
    Plain(BufWriter<W>),
    Gzip(flate2::write::GzEncoder<BufWriter<W>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<W>>),
}

impl<W: Write + Send> EdgeEncoder<W> {
    /// Begins a stream.
    pub fn new(out: W, format: FileFormat, columns: Columns) -> Result<Self> {
        if format == FileFormat::Parquet {
            return Ok(Self::Parquet(ParquetWriter::new(out, columns)?));
        }
        let buffered = BufWriter::with_capacity(256 << 10, out);
        let stream = match format {
            FileFormat::CsvGzip => {
                Stream::Gzip(flate2::write::GzEncoder::new(buffered, flate2::Compression::default()))
            }
            FileFormat::CsvZstd => {
                let mut encoder = zstd::stream::write::Encoder::new(buffered, ZSTD_LEVEL)?;
                // As zstd's own command line does, so that damage is noticed.
                encoder.include_checksum(true)?;
                Stream::Zstd(encoder)
            }
            FileFormat::Csv | FileFormat::Parquet => Stream::Plain(buffered),
        };
        Ok(Self::Csv(CsvWriter::new(stream, columns)?))
    }

    /// Adds an edge; `since` is left out where there is no such column.
    pub fn write(&mut self, edge: Edge, since: Timestamp) -> Result<()> {
        match self {
            Self::Csv(writer) => Ok(writer.write(edge, since)?),
            Self::Parquet(writer) => writer.write(edge, since),
        }
    }

    /// Writes what is left; gives the stream back.
    pub fn finish(self) -> Result<W> {
        match self {
            Self::Csv(writer) => Ok(writer.into_inner()?.finish()?),
            Self::Parquet(writer) => writer.finish(),
        }
    }
}

/// A file of edges in the making. It is not at its place before [`EdgeWriter::finish`].
pub struct EdgeWriter {
    name: String,
    encoder: EdgeEncoder<Destination>,
}

/// Where a file of edges goes.
enum Destination {
    StandardOutput(io::Stdout),
    File(OutputFile),
}

impl EdgeWriter {
    /// Begins a file; `-` is standard output.
    pub fn create(path: &Path, columns: Columns) -> Result<Self> {
        if path == Path::new("-") {
            let out = Destination::StandardOutput(io::stdout());
            let encoder = EdgeEncoder::new(out, FileFormat::Csv, columns)?;
            return Ok(Self { name: "standard output".to_owned(), encoder });
        }
        let name = path.display().to_string();
        let encoder = OutputFile::create(path)
            .map_err(anyhow::Error::from)
            .and_then(|file| EdgeEncoder::new(Destination::File(file), format_of(path), columns))
            .with_context(|| format!("could not write {name}"))?;
        Ok(Self { name, encoder })
    }

    /// Adds an edge; `since` is left out where the file has no such column.
    pub fn write(&mut self, edge: Edge, since: Timestamp) -> Result<()> {
        self.encoder.write(edge, since).with_context(|| format!("could not write {}", self.name))
    }

    /// Writes what is left, syncs it to disk and puts the file in its place.
    pub fn finish(self) -> Result<()> {
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
