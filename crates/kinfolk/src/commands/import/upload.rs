//! Imports of a server: one file as it is, several files merged into one upload, so that they are visible together or
//! not at all.

use std::thread;

use anyhow::{Result, anyhow};
use kinfolk_api::{FileFormat, ImportOutcome};
use kinfolk_client::blocking;
use kinfolk_core::{Error, ErrorCode};

use super::merged::{self, MergedFiles};
use crate::input::{Source, Stop};
use crate::profile::IMPORTED_FILE;
use crate::progress::{ReadProgress, Reporter};

/// The options that a server accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadOptions {
    pub(super) skip_invalid: bool,
    pub(super) no_limit: bool,
}

/// Imports the files.
pub(super) fn import(
    server: &blocking::Client,
    sources: &[Source],
    options: UploadOptions,
    reporter: &Reporter,
) -> Result<ImportOutcome> {
    let imported = match sources {
        [source] => import_one(server, source, options, reporter),
        sources => import_several(server, sources, options, reporter),
    };
    reporter.finish();
    imported
}

fn import_one(
    server: &blocking::Client,
    source: &Source,
    options: UploadOptions,
    reporter: &Reporter,
) -> Result<ImportOutcome> {
    let mut input = ReadProgress::new(source.open()?, source.length(), reporter);
    let options = kinfolk_client::Import {
        format: source.format(),
        skip_invalid: options.skip_invalid,
        no_limit: options.no_limit,
        // The server copies Parquet to disk first and must know whether it fits.
        length: source.length().filter(|_| source.format() == FileFormat::Parquet),
    };
    let imported = server.import(&mut input, options, |progress| reporter.report_remote(progress));
    let location = |line: Option<u64>| match line {
        Some(line) => Some(format!("{}:{line}", source.name())),
        None => Some(source.name().to_owned()),
    };
    imported.map_err(|error| locate(error, location).into())
}

/// Reads the files in a thread and uploads their edges as one file. A malformed line breaks off the upload, which the
/// server then discards.
fn import_several(
    server: &blocking::Client,
    sources: &[Source],
    options: UploadOptions,
    reporter: &Reporter,
) -> Result<ImportOutcome> {
    let (writer, reader) = merged::channel(sources);
    let upload = kinfolk_client::Import {
        format: FileFormat::Csv,
        skip_invalid: options.skip_invalid,
        no_limit: options.no_limit,
        length: None,
    };
    let (imported, read) = thread::scope(|scope| {
        let read = scope.spawn(|| writer.read_all(sources, options.skip_invalid));
        // The reader is dropped before the thread is awaited: a server that refuses early leaves it waiting for a taker.
        let imported = {
            let mut input = reader.reporting(reporter);
            server.import(&mut input, upload, |progress| reporter.report_remote(progress))
        };
        (imported, read.join())
    });
    let MergedFiles { counts, invalid, stopped } =
        read.map_err(|_| anyhow!("reading the files failed unexpectedly; nothing was imported"))?;
    match stopped {
        Some(Stop::Malformed(detail)) => return Err(Error::InvalidInput { detail }.into()),
        Some(Stop::Unreadable(error)) => return Err(error),
        Some(Stop::Refused(error)) => return Err(error.into()),
        None => {}
    }
    let location = |line: Option<u64>| merged::edge_name(sources, &counts, line?);
    let mut outcome = imported.map_err(|error| locate(error, location))?;
    outcome.invalid += invalid;
    Ok(outcome)
}

/// Puts the location in a file, whose name the server does not know, into its message. `location` is called with the line
/// of the upload, if the message has one.
fn locate(
    mut error: kinfolk_client::Error,
    location: impl Fn(Option<u64>) -> Option<String>,
) -> kinfolk_client::Error {
    let is_malformed = error.code() == Some(ErrorCode::InvalidInput);
    if let kinfolk_client::Error::Refused(refusal) = &mut error
        && is_malformed
        && let Some(rest) = refusal.problem.detail.strip_prefix(IMPORTED_FILE)
        && let Some(rest) = rest.strip_prefix(':')
    {
        let numbered = rest.split_once(':').and_then(|(line, rest)| Some((line.parse().ok()?, rest)));
        let (line, rest) = numbered.map_or((None, rest), |(line, rest)| (Some(line), rest));
        if let Some(location) = location(line) {
            refusal.problem.detail = format!("{location}:{rest}");
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use kinfolk_api::Problem;
    use kinfolk_client::Refusal;

    use super::*;

    #[test]
    fn the_file_is_named_in_the_server_s_message() {
        let named = |code, message: &str| {
            let problem = Problem::new(code, message.to_owned(), String::new());
            let error = kinfolk_client::Error::Refused(Box::new(Refusal { problem, retry_after: None }));
            locate(error, |line| Some(format!("a.csv, {line:?}"))).to_string()
        };
        let message = format!("{IMPORTED_FILE}:3: no");
        assert_eq!(named(ErrorCode::InvalidInput, &message), "a.csv, Some(3): no");
        let message = format!("{IMPORTED_FILE}: not Parquet: 5 bytes");
        assert_eq!(named(ErrorCode::InvalidInput, &message), "a.csv, None: not Parquet: 5 bytes");
        assert_eq!(named(ErrorCode::Forbidden, "no"), "no");
    }
}
