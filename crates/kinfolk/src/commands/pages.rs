//! What commands that list users or posts share: which page is asked for, and how pages are printed. A list may be longer than
//! memory, so it is printed page by page.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::PageRequest;

use crate::answer::{Answer, Outcome};
use crate::context::Context;
use crate::place::Target;

/// The largest page that the graph gives.
const PAGE_LIMIT_MAX: u16 = 1_000;

/// Which part of a list.
#[derive(Debug, Args)]
pub struct PageArguments {
    /// How many entries
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=i64::from(PAGE_LIMIT_MAX)))]
    limit: u16,
    /// Go on where the page before ended
    // One cursor in 64 begins like a flag.
    #[arg(long, allow_hyphen_values = true)]
    cursor: Option<String>,
    /// Print the whole list
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// A page of a list, in the form in which it is printed.
pub struct Page<T> {
    /// How long the whole list is, if that is part of the answer.
    pub count: Option<u64>,
    /// The entries.
    pub items: Vec<T>,
    /// The cursor of the next page, unless this is the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page of a list that is not counted.
    pub fn uncounted<E: Into<T>>(items: Vec<E>, next: Option<String>) -> Self {
        Self { count: None, items: items.into_iter().map(E::into).collect(), next }
    }
}

impl PageArguments {
    /// Prints what was asked for of the graph that a command works on, page by page.
    pub fn print<T: Answer>(
        &self,
        context: &Context,
        page_at: impl Fn(&dyn Target, PageRequest<'_>) -> Result<Page<T>>,
    ) -> Result<Outcome> {
        let target = context.place.open()?;
        self.print_pages(context, |request| page_at(&*target, request))?;
        target.close()?;
        Ok(Outcome::Done)
    }

    fn print_pages<T: Answer>(
        &self,
        context: &Context,
        page_at: impl Fn(PageRequest<'_>) -> Result<Page<T>>,
    ) -> Result<()> {
        let limit = usize::from(if self.all { PAGE_LIMIT_MAX } else { self.limit });
        let mut page = page_at(PageRequest { limit, cursor: self.cursor.as_deref() })?;
        let count = page.count;
        let mut printer = Printer::begin(context.json, count, context.stdout())?;
        loop {
            page.items.iter().try_for_each(|item| printer.item(item))?;
            match page.next.as_deref() {
                Some(cursor) if self.all => page = page_at(PageRequest { limit, cursor: Some(cursor) })?,
                _ => break,
            }
        }
        printer.end(page.next.as_deref())?;
        if !context.json && !context.quiet {
            // On stderr, so that what is piped on is the list and nothing else.
            hint(&mut io::stderr(), count, page.next.as_deref())?;
        }
        Ok(())
    }
}

/// Says what the lines of a list do not.
fn hint(out: &mut impl Write, count: Option<u64>, next: Option<&str>) -> io::Result<()> {
    match (count, next) {
        (Some(count), Some(cursor)) => writeln!(out, "{count} in all; more with --cursor {cursor}"),
        (Some(count), None) => writeln!(out, "{count} in all"),
        (None, Some(cursor)) => writeln!(out, "more with --cursor {cursor}"),
        (None, None) => Ok(()),
    }
}

/// Writes a list item by item: as one JSON document, or as lines.
struct Printer<W> {
    json: bool,
    out: W,
    is_empty: bool,
}

impl<W: Write> Printer<W> {
    fn begin(json: bool, count: Option<u64>, mut out: W) -> io::Result<Self> {
        if json {
            let count = count.map(|count| format!("\"count\":{count},")).unwrap_or_default();
            write!(out, "{{{count}\"items\":[")?;
        }
        Ok(Self { json, out, is_empty: true })
    }

    fn item(&mut self, item: &impl Answer) -> io::Result<()> {
        if !self.json {
            return item.write_plain(&mut self.out);
        }
        if !self.is_empty {
            write!(self.out, ",")?;
        }
        self.is_empty = false;
        Ok(serde_json::to_writer(&mut self.out, item)?)
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
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    struct Item {
        id: u64,
    }

    impl Answer for Item {
        fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
            writeln!(out, "{}", self.id)
        }
    }

    fn printed(json: bool, count: Option<u64>, items: u64, next: Option<&str>) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::begin(json, count, &mut out).unwrap();
        (0..items).for_each(|id| printer.item(&Item { id: id + 8 }).unwrap());
        printer.end(next).unwrap();
        hint(&mut out, count, next).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_forms() {
        insta::assert_snapshot!(printed(true, None, 2, Some("abc")), @r#"
        {"items":[{"id":8},{"id":9}],"next":"abc"}
        more with --cursor abc
        "#);
        insta::assert_snapshot!(printed(true, None, 0, None), @r#"{"items":[]}"#);
        insta::assert_snapshot!(printed(true, Some(7), 1, None), @r#"
        {"count":7,"items":[{"id":8}]}
        7 in all
        "#);
        insta::assert_snapshot!(printed(false, Some(7), 2, Some("abc")), @r"
        8
        9
        7 in all; more with --cursor abc
        ");
    }
}
