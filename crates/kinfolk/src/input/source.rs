//! The files of an import: format by name, opening, decompression.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use kinfolk_server::FileFormat;

use super::lines::LineReader;
use super::{Expected, Location, Rules, Sink, Stop, parquet};

/// A file to read, or standard input.
#[derive(Debug)]
pub struct Source {
    /// The name in messages.
    name: String,
    /// The file; none for standard input.
    path: Option<PathBuf>,
    /// Identifies a file that can be read again from the start.
    identity: Option<FileIdentity>,
    format: FileFormat,
}

/// Identifies one state of a file.
#[derive(Debug)]
struct FileIdentity {
    canonical: PathBuf,
    length: u64,
    modified_nanos: u128,
}

/// The format of a file by its extension.
pub fn format_of(path: &Path) -> FileFormat {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "gz" => FileFormat::CsvGzip,
        "zst" => FileFormat::CsvZstd,
        "parquet" => FileFormat::Parquet,
        _ => FileFormat::Csv,
    }
}

impl Source {
    /// Inspects a file without reading it, so that a missing one is reported before any work. `-` is standard input.
    pub fn inspect(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            let name = "standard input".to_owned();
            return Ok(Self { name, path: None, identity: None, format: FileFormat::Csv });
        }
        let format = format_of(path);
        let could_not = || format!("could not read {name}");
        let metadata = path.metadata().with_context(could_not)?;
        if metadata.is_dir() {
            bail!("{name} is a folder; name its files");
        }
        let identity = if metadata.is_file() {
            File::open(path).with_context(could_not)?;
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            Some(FileIdentity {
                canonical: path.canonicalize().with_context(could_not)?,
                length: metadata.len(),
                modified_nanos: modified.unwrap_or_default().as_nanos(),
            })
        } else if format == FileFormat::Parquet {
            bail!("{name} is not a regular file; Parquet can't be read from a pipe");
        } else {
            None
        };
        Ok(Self { name, path: Some(path.to_owned()), identity, format })
    }

    /// The length in bytes, if known.
    pub fn length(&self) -> Option<u64> {
        self.identity.as_ref().map(|identity| identity.length)
    }

    /// Identifies the content of the file, if it can be read again.
    pub fn fingerprint(&self) -> Option<String> {
        let FileIdentity { canonical, length, modified_nanos } = self.identity.as_ref()?;
        Some(format!("{} {length} {modified_nanos}", canonical.display()))
    }

    /// The edges according to its metadata. Only Parquet has it.
    pub fn expected(&self) -> Option<Expected> {
        let path = self.path.as_ref().filter(|_| self.format == FileFormat::Parquet)?;
        parquet::expect(File::open(path).ok()?)
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Opens it without decompressing it.
    pub fn open(&self) -> Result<Box<dyn Read>> {
        Ok(match &self.path {
            None => Box::new(io::stdin().lock()),
            Some(path) => Box::new(self.open_file(path)?),
        })
    }

    fn open_file(&self, path: &Path) -> Result<File> {
        File::open(path).with_context(|| format!("could not read {}", self.name))
    }

    /// Reads all of it into a sink; `bytes_read` counts the bytes read from the file.
    pub fn read(&self, rules: Rules, bytes_read: &Cell<u64>, sink: &mut impl Sink) -> Result<(), Stop> {
        if let (FileFormat::Parquet, Some(path)) = (self.format, &self.path) {
            let file = self.open_file(path).map_err(Stop::Unreadable)?;
            return parquet::read(file, &self.name, rules, bytes_read, sink);
        }
        let input = self.open().map_err(Stop::Unreadable)?;
        let input = Counted { input, bytes_read };
        Text { name: &self.name, format: self.format }.read(input, rules, sink)
    }
}

/// A stream of lines, possibly compressed.
pub struct Text<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The compression.
    pub format: FileFormat,
}

impl Text<'_> {
    /// Reads to the end.
    pub fn read(&self, input: impl Read, rules: Rules, sink: &mut impl Sink) -> Result<(), Stop> {
        match self.format {
            FileFormat::CsvGzip => self.read_lines(flate2::read::MultiGzDecoder::new(input), rules, sink),
            FileFormat::CsvZstd => {
                let decoder = zstd::stream::read::Decoder::new(input)
                    .context("could not start zstd decompression")
                    .map_err(Stop::Unreadable)?;
                self.read_lines(decoder, rules, sink)
            }
            FileFormat::Csv | FileFormat::Parquet => self.read_lines(input, rules, sink),
        }
    }

    fn read_lines(&self, input: impl Read, rules: Rules, sink: &mut impl Sink) -> Result<(), Stop> {
        LineReader::new(self.name, rules, sink)
            .read(input, |location, error| self.unreadable(location, error))
    }

    /// Classifies a failed read: damaged compressed data is malformed, because a retry cannot succeed.
    fn unreadable(&self, location: Location<'_>, error: io::Error) -> Stop {
        match self.format {
            FileFormat::CsvGzip => {
                Stop::malformed(location, &format!("the gzip data is damaged or cut short ({error})"))
            }
            FileFormat::CsvZstd => {
                Stop::malformed(location, &format!("the zstd data is damaged or cut short ({error})"))
            }
            FileFormat::Csv | FileFormat::Parquet => Stop::Unreadable(
                anyhow::Error::new(error).context(format!("could not continue reading at {location}")),
            ),
        }
    }
}

/// Counts the bytes read from a file, before decompression.
struct Counted<'a, R> {
    input: R,
    bytes_read: &'a Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bytes_read.set(self.bytes_read.get() + count as u64);
        Ok(count)
    }
}
