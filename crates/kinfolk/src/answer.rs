//! What a command prints on success: one JSON document, or plain lines for people.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use kinfolk_core::comments::Parent;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::serve::StopSignal;

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done, or the answer is yes.
    Done,
    /// The answer is no, or the work found something wrong.
    No,
    /// A signal has ended the work half-way.
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

/// An answer that fits memory: its JSON form is derived, its plain form is written by hand.
pub trait Answer: Serialize {
    /// Writes the lines for people.
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Ids and times are strings in JSON, as people read them.
pub fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// As [`as_text`], for what may be missing.
pub fn as_optional_text<S: Serializer>(value: &Option<impl Display>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// What a comment was written to: one field, named after its kind.
pub fn as_parent<S: Serializer>(parent: &Parent, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(1))?;
    fields.serialize_entry(parent.kind.name(), &parent.id.to_string())?;
    fields.end()
}

/// How much of a text a line shows.
const SHOWN_CHARACTERS: usize = 80;

/// The begin of a text on one line. It is of somebody else's making, so nothing in it may steer a terminal.
pub fn begin(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters.by_ref().take(SHOWN_CHARACTERS).map(harmless).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A character as it can be printed within a line.
pub fn harmless(character: char) -> char {
    match character {
        '\n' | '\t' => ' ',
        control if control.is_control() => '\u{fffd}',
        other => other,
    }
}

/// A number with its thousands set apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Lines of names and numbers, the numbers aligned at their right.
pub fn write_figures(out: &mut dyn Write, figures: &[(&str, String)]) -> io::Result<()> {
    let name_width = figures.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let figure_width = figures.iter().map(|(_, figure)| figure.chars().count()).max().unwrap_or_default();
    for (name, figure) in figures {
        writeln!(out, "{name:name_width$}  {figure:>figure_width$}")?;
    }
    Ok(())
}

/// Where the texts of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows under the names of their columns.
pub fn write_table<const N: usize>(
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
    fn the_begin_of_a_text_is_one_line() {
        assert_eq!(begin(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(begin(&"é".repeat(81)), "é".repeat(80) + "…");
        assert_eq!(begin("\u{9b}31m\u{7f}a\n\tb\r"), "\u{fffd}31m\u{fffd}a  b\u{fffd}");
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
