//! Pages of lists: what a client requests, and what it gets.

/// Selects a page of a list.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// The maximum number of entries.
    pub limit: usize,
    /// The `next` cursor of the previous page; `None` for the first page.
    pub cursor: Option<&'a str>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<String>,
}

impl PageRequest<'_> {
    /// How many entries to read: one more than requested shows whether there is a next page, so that a full last page has no
    /// `next`.
    pub(crate) fn wanted(self) -> usize {
        self.limit + 1
    }

    /// The page of the entries that were read.
    pub(crate) fn page<T>(self, mut items: Vec<T>, cursor: impl FnOnce(&T) -> String) -> Page<T> {
        let has_more = items.len() > self.limit;
        items.truncate(self.limit);
        let next = items.last().filter(|_| has_more).map(cursor);
        Page { items, next }
    }
}
