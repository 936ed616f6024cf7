//! What a failed command prints and how it exits: one line on stderr, status 1 for failed work, 2 for wrong usage.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::print::harmless;

const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// Wrong usage that only shows after the arguments were read.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// What a server has refused or failed at, in its own words.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The class of the error, if this version knows it.
    pub(crate) code: Option<kinfolk_core::ErrorCode>,
    /// What the server said.
    pub(crate) message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Reports a failure and says how to exit.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // Whoever read our output has seen enough, as in `kinfolk export - | head`.
        return ExitCode::SUCCESS;
    }
    print_line(&format!("{error:#}"));
    ExitCode::from(exit_status(error))
}

/// Reports arguments that could not be read; help and version, which come the same way, are printed as they are.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        // Nothing can be done when even this can't be printed.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
    }
    print_line(&usage_line(&error.render().to_string()));
    ExitCode::from(USAGE)
}

fn exit_status(error: &anyhow::Error) -> u8 {
    if error.is::<UsageError>() {
        return USAGE;
    }
    let code = error.chain().find_map(|cause| {
        let here = cause.downcast_ref::<kinfolk_core::Error>().map(kinfolk_core::Error::code);
        here.or_else(|| cause.downcast_ref::<Refusal>().and_then(|refusal| refusal.code))
    });
    code.map_or(FAILED, kinfolk_core::ErrorCode::exit_status)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The gist of clap's message, which spreads over several paragraphs.
fn usage_line(rendered: &str) -> String {
    let mut line = String::new();
    let gist =
        rendered.lines().take_while(|text| !text.starts_with("Usage:") && !text.starts_with("For more"));
    for part in gist.map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part.strip_prefix("error: ").unwrap_or(part));
    }
    line + "; try 'kinfolk --help'"
}

fn print_line(message: &str) {
    // A server's message may quote what somebody else has written.
    let message: String = message.replace('\r', " ").chars().map(harmless).collect();
    // Nothing can be done when stderr is closed.
    let _ = writeln!(io::stderr(), "kinfolk: {message}");
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_cause_decides_the_status() {
        let failed = anyhow::anyhow!("something");
        let refused = anyhow::Error::new(kinfolk_core::Error::SelfFollow).context("follow");
        let malformed = Err::<(), _>(kinfolk_core::Error::InvalidCursor).context("list").unwrap_err();
        let usage = anyhow::Error::new(UsageError("no".to_owned()));
        let code = Some(kinfolk_core::ErrorCode::InvalidCursor);
        let told = anyhow::Error::new(Refusal { code, message: "no".to_owned() });
        let statuses = [failed, refused, malformed, usage, told].each_ref().map(exit_status);
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
