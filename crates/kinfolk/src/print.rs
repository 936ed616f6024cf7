//! Printing results: one JSON document, or text for people.

use std::io::{self, Write};
use std::process::ExitCode;

use indicatif::HumanCount;
use kinfolk_api::WriteOutcome;
use serde::Serialize;

use crate::signals::StopSignal;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success, or the result is yes.
    Done,
    /// The result is no, or the command found a defect.
    No,
    /// A signal interrupted the work.
    Interrupted(StopSignal),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::No => Self::from(1),
            Outcome::Interrupted(signal) => Self::from(signal.exit_status()),
        }
    }
}

/// A result, or an item of a list: serialised for `--json`, written as text otherwise.
pub(crate) trait Print: Serialize {
    /// Writes the text.
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// The result of a write, as all commands that write print it.
#[derive(Serialize)]
pub(crate) struct WriteResult {
    #[serde(flatten)]
    pub(crate) outcome: WriteOutcome,
    /// The text form.
    #[serde(skip)]
    pub(crate) message: String,
}

impl Print for WriteResult {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.message)?;
        writeln!(out, "token {}", self.outcome.token)
    }
}

/// The length of an excerpt.
const EXCERPT_CHARS: usize = 80;

/// The beginning of a user's text, on one line and without terminal escapes.
pub(crate) fn excerpt(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters.by_ref().take(EXCERPT_CHARS).map(harmless).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Replaces line breaks and control characters.
pub(crate) fn harmless(character: char) -> char {
    match character {
        '\n' | '\t' => ' ',
        control if control.is_control() => '\u{fffd}',
        other => other,
    }
}

/// A number with thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Writes lines of names and values, the values right-aligned.
pub(crate) fn write_stats(out: &mut dyn Write, stats: &[(&str, String)]) -> io::Result<()> {
    let name_width = stats.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let value_width = stats.iter().map(|(_, value)| value.chars().count()).max().unwrap_or_default();
    for (name, value) in stats {
        writeln!(out, "{name:name_width$}  {value:>value_width$}")?;
    }
    Ok(())
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Writes rows below a header.
pub(crate) fn write_table<const N: usize>(
    out: &mut dyn Write,
    columns: [(&str, Align); N],
    rows: impl Iterator<Item = [String; N]>,
) -> io::Result<()> {
    let names = columns.map(|(name, _)| name.to_owned());
    let rows: Vec<[String; N]> = std::iter::once(names).chain(rows).collect();
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or_default());
    for row in &rows {
        let cells = row.iter().zip(widths).zip(columns).map(|((text, width), (_, align))| match align {
            Align::Left => format!("{text:width$}"),
            Align::Right => format!("{text:>width$}"),
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line() {
        assert_eq!(excerpt(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(excerpt(&"é".repeat(81)), "é".repeat(80) + "…");
        assert_eq!(excerpt("\u{9b}31m\u{7f}a\n\tb\r"), "\u{fffd}31m\u{fffd}a  b\u{fffd}");
    }

    #[test]
    fn thousands_are_separated() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
