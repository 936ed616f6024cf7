//! The table of edges: follower, followee and optionally since.

use std::io::Write;

use ::parquet::data_type::Int64Type;
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedRowGroupWriter;
use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Timestamp};

use super::Table;
use super::csv::{Lines, push_id};
use super::parquet::{Group, Ids, Required};

/// Rows per row group: 24 MB of integers.
const GROUP_ROWS: usize = 1 << 20;

/// The columns of a file of edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edges {
    /// The kind of ids.
    pub(crate) ids: IdKind,
    /// Whether there is a third column, `since`.
    pub(crate) since: bool,
}

/// An edge with its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeRow {
    pub(crate) edge: Edge,
    pub(crate) since: Timestamp,
}

impl Table for Edges {
    type Row = EdgeRow;
    type Lines = EdgeLines;
    type Group = EdgeGroup;

    fn lines(self) -> EdgeLines {
        let first = Timestamp::MIN;
        let since = self.since.then(|| SinceText { since: first, text: first.to_string() });
        EdgeLines { since }
    }

    fn group(self) -> EdgeGroup {
        EdgeGroup {
            table: self,
            followers: Ids::new(self.ids),
            followees: Ids::new(self.ids),
            since: self.since.then(Required::new),
        }
    }
}

/// Edges as lines.
pub(crate) struct EdgeLines {
    since: Option<SinceText>,
}

/// The text of the last `since`: many edges of an import share one.
struct SinceText {
    since: Timestamp,
    text: String,
}

impl Lines for EdgeLines {
    type Row = EdgeRow;

    fn header(&self) -> &'static str {
        if self.since.is_some() { "follower,followee,since" } else { "follower,followee" }
    }

    fn push(&mut self, &EdgeRow { edge, since }: &EdgeRow, buffer: &mut Vec<u8>) {
        push_id(buffer, edge.follower);
        buffer.push(b',');
        push_id(buffer, edge.followee);
        if let Some(last) = &mut self.since {
            if last.since != since {
                *last = SinceText { since, text: since.to_string() };
            }
            buffer.push(b',');
            buffer.extend_from_slice(last.text.as_bytes());
        }
    }
}

/// Edges as columns.
pub(crate) struct EdgeGroup {
    table: Edges,
    followers: Ids,
    followees: Ids,
    since: Option<Required<Int64Type>>,
}

impl Group for EdgeGroup {
    type Row = EdgeRow;

    fn schema(&self) -> String {
        let ids = self.table.ids;
        let [follower, followee] = ["follower", "followee"].map(|name| Ids::column(ids, name));
        let since = if self.table.since { "REQUIRED INT64 since (TIMESTAMP(MILLIS,true));" } else { "" };
        format!("message edges {{ {follower} {followee} {since} }}")
    }

    fn push(&mut self, &EdgeRow { edge, since }: &EdgeRow) {
        self.followers.push(edge.follower);
        self.followees.push(edge.followee);
        if let Some(column) = &mut self.since {
            // Timestamps end with the year 9999, so they fit.
            column.0.push(since.millis() as i64);
        }
    }

    fn is_empty(&self) -> bool {
        self.followers.len() == 0
    }

    fn is_full(&self) -> bool {
        self.followers.len() >= GROUP_ROWS
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        self.followers.write(group)?;
        self.followees.write(group)?;
        self.since.as_mut().map_or(Ok(()), |since| since.write(group))
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Id;

    use super::super::csv::CsvWriter;
    use super::*;

    #[test]
    fn lines() {
        let edges = [(1, 2, 5), (1, 3, 5), (2, 1, 6)];
        for (since, text) in [
            (false, "follower,followee\n1,2\n1,3\n2,1\n"),
            (
                true,
                "follower,followee,since\n1,2,1970-01-01T00:00:00.005Z\n1,3,1970-01-01T00:00:00.005Z\n\
                 2,1,1970-01-01T00:00:00.006Z\n",
            ),
        ] {
            let table = Edges { ids: IdKind::Integer, since };
            let mut writer = CsvWriter::new(Vec::new(), table.lines());
            for (follower, followee, at) in edges {
                let edge = Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
                writer.write(&EdgeRow { edge, since: Timestamp::from_millis(at) }).unwrap();
            }
            assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), text);
        }
    }
}
