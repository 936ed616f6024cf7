//! What a table is: its columns, and the values of a row. `csv` and `parquet` write them.

use std::borrow::Cow;

use kinfolk_core::{Id, IdKind, Timestamp};

/// A table.
pub(crate) trait Table: Copy {
    /// A row.
    type Row;
    /// Its name in a Parquet file.
    const NAME: &'static str;
    /// Maximum rows of a row group.
    const GROUP_ROWS: usize;

    /// Its columns.
    fn columns(self) -> Vec<Column>;

    /// Passes the values of a row to `each`, in the order of the columns.
    fn visit(self, row: &Self::Row, each: impl FnMut(Value<'_>));

    /// The names of the columns, separated by commas.
    fn header(self) -> String {
        self.columns().iter().map(|column| column.name).collect::<Vec<_>>().join(",")
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    /// Whether a row may have no value. It is empty in CSV and null in Parquet.
    pub(crate) is_optional: bool,
}

/// The type of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ColumnKind {
    Int32,
    Int64,
    Time,
    Text,
}

impl Column {
    /// A column with a value in every row.
    pub(crate) fn required(name: &'static str, kind: ColumnKind) -> Self {
        Self { name, kind, is_optional: false }
    }

    /// A column with optional values.
    pub(crate) fn optional(name: &'static str, kind: ColumnKind) -> Self {
        Self { name, kind, is_optional: true }
    }

    /// A column of ids: integers, or UUIDs as text.
    pub(crate) fn ids(name: &'static str, ids: IdKind) -> Self {
        let kind = match ids {
            IdKind::Integer => ColumnKind::Int64,
            IdKind::Uuid => ColumnKind::Text,
        };
        Self::required(name, kind)
    }
}

/// A value of a row.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Missing,
    Id(Id),
    Number(u32),
    Time(Timestamp),
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// Text that may be missing.
    pub(crate) fn text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Missing, |text| Self::Text(text.into()))
    }
}
