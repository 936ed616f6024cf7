//! The table of edges: follower, followee and optionally since.

use kinfolk_core::graph::Edge;
use kinfolk_core::{IdKind, Timestamp};

use super::table::{Column, ColumnKind, Table, Value};

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
    const NAME: &'static str = "edges";
    /// 24 MB of integers.
    const GROUP_ROWS: usize = 1 << 20;

    fn columns(self) -> Vec<Column> {
        let mut columns = ["follower", "followee"].map(|name| Column::ids(name, self.ids)).to_vec();
        columns.extend(self.since.then(|| Column::required("since", ColumnKind::Time)));
        columns
    }

    fn visit(self, &EdgeRow { edge, since }: &EdgeRow, mut each: impl FnMut(Value<'_>)) {
        each(Value::Id(edge.follower));
        each(Value::Id(edge.followee));
        if self.since {
            each(Value::Time(since));
        }
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
            let mut writer = CsvWriter::new(Vec::new(), table);
            for (follower, followee, at) in edges {
                let edge = Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
                writer.write(&EdgeRow { edge, since: Timestamp::from_millis(at) }).unwrap();
            }
            assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), text);
        }
    }
}
