//! `following`, `followers` and `friends`: one user's list, a page or all of it. A list may be longer than memory, so
//! it is printed page by page.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::graph::{ListEntry, PageRequest};
use kinfolk_core::{Id, Timestamp};
use serde::Serialize;

use crate::answer::{Outcome, as_text};
use crate::arguments::parse_id;
use crate::context::Context;
use crate::place::List;

/// The largest page that the graph gives.
const PAGE_LIMIT_MAX: u16 = 1_000;

/// What a list command is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk followers 7 --limit 10\n  \
    kinfolk followers 7 --all --json\n\n\
    A page that is not the last one ends with the cursor of the next.")]
pub struct Arguments {
    /// Whose list
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: Id,
    /// How many entries
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=i64::from(PAGE_LIMIT_MAX)))]
    limit: u16,
    /// Go on where the page before ended
    #[arg(long)]
    cursor: Option<String>,
    /// Print the whole list
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Arguments {
    pub fn run(self, list: List, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let limit = usize::from(if self.all { PAGE_LIMIT_MAX } else { self.limit });
        let page_after = |cursor: Option<&str>| target.page(list, self.id, PageRequest { limit, cursor });
        let mut page = page_after(self.cursor.as_deref())?;
        let mut printer = Printer::begin(context.json, context.stdout())?;
        loop {
            page.items.iter().try_for_each(|entry| printer.entry(entry))?;
            match page.next.as_deref() {
                Some(cursor) if self.all => page = page_after(Some(cursor))?,
                _ => break,
            }
        }
        printer.end(page.next.as_deref())?;
        target.close()?;
        if let Some(cursor) = page.next.filter(|_| !context.json && !context.quiet) {
            // On stderr, so that what is piped on is the list and nothing else.
            writeln!(io::stderr(), "more with --cursor {cursor}")?;
        }
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
    #[serde(serialize_with = "as_text")]
    since: Timestamp,
}

/// Writes a list entry by entry: as one JSON document, or as lines of time and id.
struct Printer<W> {
    json: bool,
    out: W,
    is_empty: bool,
}

impl<W: Write> Printer<W> {
    fn begin(json: bool, mut out: W) -> io::Result<Self> {
        if json {
            write!(out, "{{\"items\":[")?;
        }
        Ok(Self { json, out, is_empty: true })
    }

    fn entry(&mut self, entry: &ListEntry) -> io::Result<()> {
        if !self.json {
            // The time comes first: it is always as wide, which keeps the columns straight on every page.
            return writeln!(self.out, "{}  {}", entry.since, entry.id);
        }
        if !self.is_empty {
            write!(self.out, ",")?;
        }
        self.is_empty = false;
        Ok(serde_json::to_writer(&mut self.out, &Item { id: entry.id, since: entry.since })?)
    }

    fn end(mut self, next: Option<&str>) -> io::Result<()> {
        if self.json {
            write!(self.out, "]")?;
            if let Some(next) = next {
                write!(self.out, ",\"next\":")?;
                serde_json::to_writer(&mut self.out, next)?;
            }
            writeln!(self.out, "}}")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(json: bool, count: u64, next: Option<&str>) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::begin(json, &mut out).unwrap();
        for number in 0..count {
            let entry = ListEntry { since: Timestamp::from_millis(number), id: Id::Integer(number + 8) };
            printer.entry(&entry).unwrap();
        }
        printer.end(next).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_forms() {
        insta::assert_snapshot!(printed(true, 2, Some("abc")), @r#"{"items":[{"id":"8","since":"1970-01-01T00:00:00.000Z"},{"id":"9","since":"1970-01-01T00:00:00.001Z"}],"next":"abc"}"#);
        insta::assert_snapshot!(printed(true, 0, None), @r#"{"items":[]}"#);
        insta::assert_snapshot!(printed(false, 2, Some("abc")), @r"
        1970-01-01T00:00:00.000Z  8
        1970-01-01T00:00:00.001Z  9
        ");
    }
}
