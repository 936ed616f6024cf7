//! The edges in a backup: blocks of each kind, with records as in a run of pairs.

use kinfolk_core::bulk::Progress;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, IdKind, Result, Timestamp};

use super::load::{Block, PairRecord, Record};
use super::{Edges, Tree};
use crate::disk::backup_file::{BackupPart, Blocks, Reader};
use crate::disk::id_encoding::IdEncoding;

/// All edges as they are in files and sealed memtables. Called by the writer, between two batches.
pub(crate) fn back_up(edges: &Edges) -> BackupPart {
    let _paused = edges.rows.pause();
    let kinds = EdgeKind::ALL.map(|kind| (kind, edges.rows.scan(Tree::Pairs, kind)));
    let count = EdgeKind::ALL.iter().map(|&kind| edges.index.of(kind).edge_count()).sum();
    let ids = edges.rows.ids;
    Box::new(move |out, totals, progress| {
        for (kind, rows) in kinds {
            let before = totals.edges;
            let report = |done| {
                progress(Progress { stage: "backing up", done: before + done, total: Some(count) });
            };
            totals.edges += match ids {
                IdKind::Integer => write_kind::<u64>(out, kind, rows, report)?,
                IdKind::Uuid => write_kind::<u128>(out, kind, rows, report)?,
            };
        }
        Ok(())
    })
}

fn write_kind<K: IdEncoding>(
    out: &mut Blocks<'_>,
    kind: EdgeKind,
    rows: impl Iterator<Item = Result<(Edge, Timestamp)>>,
    report: impl Fn(u64),
) -> Result<u64> {
    let mut before = PairRecord::<K>::default();
    let encode = |block: &mut Vec<u8>, (edge, since): (Edge, Timestamp)| {
        if block.is_empty() {
            before = PairRecord::default();
        }
        let (follower, followee) = (K::from_id(edge.follower), K::from_id(edge.followee));
        let record = PairRecord { follower, followee, since: since.millis() };
        record.encode(before, block);
        before = record;
    };
    out.write_rows(kind.number().into(), rows, encode, report)
}

/// The edges of one kind in a backup, in order.
pub(crate) struct KindEdges<'a, 'b, K> {
    reader: &'a mut Reader<'b>,
    kind: EdgeKind,
    block: Block,
    before: PairRecord<K>,
}

impl<'a, 'b, K: IdEncoding> KindEdges<'a, 'b, K> {
    /// Before the first of them.
    pub(crate) fn new(reader: &'a mut Reader<'b>, kind: EdgeKind) -> Self {
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
