//! Failures of a command: one line on stderr, and exit status 1 for failed work or 2 for wrong usage.

use std::io::{self, Write};
use std::process::ExitCode;

use kinfolk_core::ErrorCode;

use crate::print::harmless;

const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// Wrong usage that is detected after the arguments were parsed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Prints a failure; returns the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return usage(error);
    }
    if is_broken_pipe(error) {
        // The reader of the output stopped early, as in `kinfolk export - | head`.
        return ExitCode::SUCCESS;
    }
    print_line(&format!("{error:#}{}", advice(error)));
    ExitCode::from(exit_status(error))
}

/// Prints a usage error. Help and version, which clap reports the same way, are printed unchanged.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        // A closed stream cannot be reported.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
    }
    print_line(&usage_line(&error.render().to_string()));
    ExitCode::from(USAGE)
}

/// What to do about a server that cannot be reached.
fn advice(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref() {
        Some(kinfolk_client::Error::Unreachable { .. }) => {
            "; start one with 'kinfolk serve' or name a folder with --data DIR"
        }
        _ => "",
    }
}

fn exit_status(error: &anyhow::Error) -> u8 {
    if error.is::<UsageError>() {
        return USAGE;
    }
    let code = error.chain().find_map(|cause| {
        let here = cause.downcast_ref::<kinfolk_core::Error>().map(kinfolk_core::Error::code);
        here.or_else(|| cause.downcast_ref::<kinfolk_client::Error>().and_then(kinfolk_client::Error::code))
    });
    code.map_or(FAILED, ErrorCode::exit_status)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Clap's message of several paragraphs on one line.
fn usage_line(rendered: &str) -> String {
    let mut line = String::new();
    let message =
        rendered.lines().take_while(|text| !text.starts_with("Usage:") && !text.starts_with("For more"));
    for part in message.map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part.strip_prefix("error: ").unwrap_or(part));
    }
    plain(&line) + "; try 'kinfolk --help'"
}

/// The reason of the standard library for a malformed number, in other words.
pub(crate) fn plain(message: &str) -> String {
    let reasons = [
        "invalid digit found in string",
        "cannot parse integer from empty string",
        "invalid float literal",
        "cannot parse float from empty string",
    ];
    let kinds = ["a whole number", "a whole number", "a number", "a number"];
    reasons.iter().zip(kinds).fold(message.to_owned(), |message, (reason, kind)| {
        message.replace(reason, &format!("expected {kind}"))
    })
}

fn print_line(message: &str) {
    // The message of a server may quote a user's text.
    let message: String = message.replace('\r', " ").chars().map(harmless).collect();
    // A closed stderr cannot be reported.
    let _ = writeln!(io::stderr(), "kinfolk: {message}");
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use kinfolk_api::Problem;
    use kinfolk_client::Refusal;

    use super::*;

    #[test]
    fn the_cause_decides_the_exit_status() {
        let failed = anyhow::anyhow!("something");
        let refused = anyhow::Error::new(kinfolk_core::Error::SelfFollow).context("follow");
        let malformed = Err::<(), _>(kinfolk_core::Error::InvalidCursor).context("list").unwrap_err();
        let usage = anyhow::Error::new(UsageError("no".to_owned()));
        let problem = Problem::new(ErrorCode::InvalidCursor, "no".to_owned(), String::new());
        let refusal = Box::new(Refusal { problem, retry_after: None });
        let remote = anyhow::Error::new(kinfolk_client::Error::Refused(refusal));
        let statuses = [failed, refused, malformed, usage, remote].each_ref().map(exit_status);
        assert_eq!(statuses, [1, 1, 2, 2, 2]);
    }

    #[test]
    fn usage_becomes_one_line() {
        let rendered = "error: unrecognized subcommand 'folow'\n\n  tip: a similar one exists: 'follow'\n\n\
                        Usage: kinfolk <COMMAND>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            usage_line(rendered),
            "unrecognized subcommand 'folow'; tip: a similar one exists: 'follow'; try 'kinfolk --help'"
        );
        let missing = "error: the following arguments were not provided:\n  <FOLLOWEE>\n\nUsage: kinfolk\n";
        assert_eq!(
            usage_line(missing),
            "the following arguments were not provided: <FOLLOWEE>; try 'kinfolk --help'"
        );
    }
}
