//! Paging, shared by all commands that list: the arguments that choose a page, and printing page by page, because a list
//! may be larger than memory.

use kinfolk_client::PageOfItems;
use kinfolk_core::PageRequest;

use super::prelude::*;

/// The maximum page size of the graph.
const PAGE_LIMIT_MAX: u16 = 1_000;

/// The part of a list to print.
#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=i64::from(PAGE_LIMIT_MAX)))]
    limit: u16,
    /// Continue after the previous page
    // One cursor in 64 starts with a hyphen.
    #[arg(long, allow_hyphen_values = true)]
    cursor: Option<String>,
    /// Print the whole list
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl PageArguments {
    /// Prints the requested page, or all of them; `page_at` calls the client for one.
    pub(crate) fn print<P: PageOfItems<Item: Print>>(
        &self,
        context: &Context,
        page_at: impl Fn(&Client, PageRequest<'_>) -> Result<P>,
    ) -> Result<Outcome> {
        let limit = usize::from(if self.all { PAGE_LIMIT_MAX } else { self.limit });
        context.call(|client| {
            let page = page_at(client, PageRequest { limit, cursor: self.cursor.as_deref() })?;
            let count = page.count();
            let mut printer = Printer::begin(context.json, count, context.stdout())?;
            let (mut items, mut next) = page.into_parts();
            loop {
                items.iter().try_for_each(|item| printer.item(item))?;
                let Some(cursor) = next.as_deref().filter(|_| self.all) else { break };
                (items, next) = page_at(client, PageRequest { limit, cursor: Some(cursor) })?.into_parts();
            }
            printer.end(next.as_deref())?;
            if !context.json && !context.quiet {
                // On stderr, so that a pipe gets nothing but the list.
                hint(&mut io::stderr(), count, next.as_deref())?;
            }
            Ok(Outcome::Done)
        })
    }
}

/// Prints the length of the list and the next cursor.
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

    fn item(&mut self, item: &impl Print) -> io::Result<()> {
        if !self.json {
            return item.write_text(&mut self.out);
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

    impl Print for Item {
        fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
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
