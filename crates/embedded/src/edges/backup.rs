//! The edges in a backup: blocks of each kind, with records as in a run of pairs.

use kinfolk_core::bulk::Progress;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, IdKind, Result, Timestamp};

use super::load::{Block, PairRecord, Record};
use super::{Edges, Tree};
use crate::disk::backup_file::{BackupPart, Blocks, Reader, Totals};
use crate::disk::id_encoding::IdEncoding;

type Rows = Box<dyn Iterator<Item = Result<(Edge, Timestamp)>> + Send>;

/// All edges as of one moment.
pub struct EdgesSnapshot {
    ids: IdKind,
    kinds: Vec<(EdgeKind, Rows)>,
    count: u64,
}

impl EdgesSnapshot {
    /// The edges as they are in files and sealed memtables. Called by the writer, between two batches.
    pub fn take(edges: &Edges) -> Self {
        let _paused = edges.rows.pause();
        let rows = |kind| (kind, Box::new(edges.rows.scan(Tree::Pairs, kind)) as Rows);
        Self {
            ids: edges.rows.ids(),
            kinds: EdgeKind::ALL.map(rows).into(),
            count: EdgeKind::ALL.iter().map(|&kind| edges.index.of(kind).edge_count()).sum(),
        }
    }
}

impl BackupPart for EdgesSnapshot {
    fn write(
        self: Box<Self>,
        out: &mut Blocks<'_>,
        totals: &mut Totals,
        progress: &dyn Fn(Progress),
    ) -> Result<()> {
        let step = |done| progress(Progress { stage: "backing up", done, total: Some(self.count) });
        for (kind, rows) in self.kinds {
            match self.ids {
                IdKind::Integer => write_kind::<u64>(out, kind, rows, totals, &step)?,
                IdKind::Uuid => write_kind::<u128>(out, kind, rows, totals, &step)?,
            }
        }
        Ok(())
    }
}

fn write_kind<K: IdEncoding>(
    out: &mut Blocks<'_>,
    kind: EdgeKind,
    rows: Rows,
    totals: &mut Totals,
    step: &dyn Fn(u64),
) -> Result<()> {
    let number = u32::from(kind.number());
    let mut before = PairRecord::<K>::default();
    for row in rows {
        let (edge, since) = row?;
        let (follower, followee) = (K::from_id(edge.follower), K::from_id(edge.followee));
        let record = PairRecord { follower, followee, since: since.millis() };
        record.encode(before, &mut out.block);
        before = record;
        totals.edges += 1;
        if out.close_if_full(number)? {
            before = PairRecord::default();
            step(totals.edges);
        }
    }
    out.close_if_any(number)
}

/// The edges of one kind in a backup, in order.
pub struct KindEdges<'a, 'b, K> {
    reader: &'a mut Reader<'b>,
    kind: EdgeKind,
    block: Block,
    before: PairRecord<K>,
}

impl<'a, 'b, K: IdEncoding> KindEdges<'a, 'b, K> {
    /// Before the first of them.
    pub fn new(reader: &'a mut Reader<'b>, kind: EdgeKind) -> Self {
        Self { reader, kind, block: Block::default(), before: PairRecord::default() }
    }
}

impl<K: IdEncoding> Iterator for KindEdges<'_, '_, K> {
    type Item = Result<PairRecord<K>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.block.is_read() {
            match self.reader.block(u32::from(self.kind.number())) {
                Err(error) => return Some(Err(error)),
                Ok(None) => return None,
                Ok(Some(bytes)) => self.block = Block::new(bytes),
            }
            self.before = PairRecord::default();
        }
        let Some(record) = PairRecord::decode(self.before, &mut self.block) else {
            return Some(Err(self.reader.damaged()));
        };
        self.before = record;
        self.reader.totals.edges += 1;
        let since = self.reader.clamped(Timestamp::from_millis(record.since)).millis();
        Some(Ok(PairRecord { since, ..record }))
    }
}
