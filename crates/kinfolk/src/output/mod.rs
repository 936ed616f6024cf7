//! Writing edges to a file: CSV, plain or compressed, or Parquet, by the ending of its name.

mod csv;
mod file;
mod parquet;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Timestamp};

use csv::CsvWriter;
use file::OutputFile;
use parquet::ParquetWriter;

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

/// A file of edges in the making. It is not at its place before [`EdgeWriter::finish`].
pub struct EdgeWriter {
    name: String,
    form: Form,
}

enum Form {
    Csv(CsvWriter<Stream>),
    Parquet(ParquetWriter<OutputFile>),
}

/// Where CSV goes.
enum Stream {
    StandardOutput(BufWriter<io::Stdout>),
    Plain(BufWriter<OutputFile>),
    Gzip(flate2::write::GzEncoder<BufWriter<OutputFile>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<OutputFile>>),
}

impl EdgeWriter {
    /// Begins a file; `-` is standard output.
    pub fn create(path: &Path, columns: Columns) -> Result<Self> {
        let name = path.display().to_string();
        let context = || format!("could not write {name}");
        if path == Path::new("-") {
            let stream = Stream::StandardOutput(BufWriter::with_capacity(256 << 10, io::stdout()));
            let form = Form::Csv(CsvWriter::new(stream, columns)?);
            return Ok(Self { name: "standard output".to_owned(), form });
        }
        let file = OutputFile::create(path).with_context(context)?;
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let ending = ending.to_ascii_lowercase();
        if ending == "parquet" {
            let form = Form::Parquet(ParquetWriter::new(file, columns).with_context(context)?);
            return Ok(Self { name, form });
        }
        let buffered = BufWriter::with_capacity(256 << 10, file);
        let stream = match ending.as_str() {
            "gz" => Stream::Gzip(flate2::write::GzEncoder::new(buffered, flate2::Compression::default())),
            "zst" => {
                let mut encoder =
                    zstd::stream::write::Encoder::new(buffered, ZSTD_LEVEL).with_context(context)?;
                // As zstd's own command line does, so that damage is noticed.
                encoder.include_checksum(true).with_context(context)?;
                Stream::Zstd(encoder)
            }
            _ => Stream::Plain(buffered),
        };
        let form = Form::Csv(CsvWriter::new(stream, columns).with_context(context)?);
        Ok(Self { name, form })
    }

    /// Adds an edge; `since` is left out where the file has no such column.
    pub fn write(&mut self, edge: Edge, since: Timestamp) -> Result<()> {
        let written = match &mut self.form {
            Form::Csv(writer) => writer.write(edge, since).map_err(anyhow::Error::from),
            Form::Parquet(writer) => writer.write(edge, since),
        };
        written.with_context(|| format!("could not write {}", self.name))
    }

    /// Writes what is left, syncs it to disk and puts the file in its place.
    pub fn finish(self) -> Result<()> {
        let Self { name, form } = self;
        let finished = || -> Result<()> {
            match form {
                Form::Csv(writer) => writer.into_inner()?.finish()?,
                Form::Parquet(writer) => writer.finish()?.commit()?,
            }
            Ok(())
        };
        finished().with_context(|| format!("could not write {name}"))
    }
}

impl Stream {
    fn finish(self) -> io::Result<()> {
        let buffered = match self {
            Self::StandardOutput(mut out) => return out.flush(),
            Self::Plain(buffered) => buffered,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::StandardOutput(out) => out.write(bytes),
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::StandardOutput(out) => out.flush(),
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}
