//! How long each layer of the store takes: histograms for metrics, and events that become spans of the current request.
//! The caller decides where a layer begins and ends.
//!
//! A check is not measured: it takes about as long as reading the clock twice. Look-ups of many edges at once are.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kinfolk_core::histogram::{Histogram, HistogramSnapshot};
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// The target of the events that say how long a layer took within a request. They are emitted within the request's span, and have the
/// fields `layer`, `nanos` (how long it took) and `ended_nanos_ago`.
pub const LAYER_TARGET: &str = "kinfolk::layer";

/// From so many look-ups on, the clock is read twice for all of them together.
const BULK_MIN: usize = 16;

/// A layer that a request passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A write waits until the writer takes it.
    WriterQueue,
    /// The change log is synced.
    LogSync,
    /// Lists, posts or comments are read from the row trees.
    Rows,
    /// An edge is looked up in the index.
    Index,
}

kinfolk_core::names! {
    Layer {
        WriterQueue => "writer_queue",
        LogSync => "log_sync",
        Rows => "rows",
        Index => "index",
    }
}

/// The times of all layers since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Layers([Histogram; Layer::ALL.len()]);

impl Layers {
    /// Counts a time.
    pub(crate) fn observe(&self, layer: Layer, took: Duration) {
        self.0[layer as usize].observe(1, took);
    }

    /// Reads rows.
    pub(crate) fn rows<T>(&self, read: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let found = read();
        let took = started.elapsed();
        self.observe(Layer::Rows, took);
        report(Layer::Rows, took, Duration::ZERO);
        found
    }

    /// Looks so many edges up in the index: measured if they are many, and counted with their mean.
    pub(crate) fn index<T>(&self, count: usize, look_up: impl FnOnce() -> T) -> T {
        if count < BULK_MIN {
            return look_up();
        }
        let started = Instant::now();
        let found = look_up();
        let took = started.elapsed();
        // More look-ups than fit 32 bits are not asked for at once.
        let mean = took / u32::try_from(count).unwrap_or(u32::MAX);
        self.0[Layer::Index as usize].observe(count as u64, mean);
        report(Layer::Index, took, Duration::ZERO);
        found
    }

    /// What was counted so far.
    pub(crate) fn snapshot(&self, layer: Layer) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.0[layer as usize].add_to(&mut snapshot);
        snapshot
    }
}

/// Reports how long a layer took to the trace of the request. Costs next to nothing without one.
fn report(layer: Layer, took: Duration, ended_ago: Duration) {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    tracing::event!(
        target: LAYER_TARGET,
        Level::TRACE,
        layer = layer.name(),
        nanos = nanos(took),
        ended_nanos_ago = nanos(ended_ago),
    );
}

/// When the writer did what with a request that is traced: filled in by the writer, reported by the task that waits for it, so that the writer
/// has no more to do than to note the time.
#[derive(Debug, Default)]
pub(crate) struct WriteTimes {
    taken: OnceLock<Instant>,
    synced: OnceLock<SyncTime>,
}

/// A sync of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncTime {
    /// When it finished.
    pub at: Instant,
    /// How long it took.
    pub took: Duration,
}

impl WriteTimes {
    /// Times to fill in, if the current request may be traced.
    pub(crate) fn if_traced() -> Option<Arc<Self>> {
        // Asking whether the event is enabled would leave a mark with filters per layer, and the next span would be lost.
        let may_be_traced =
            LevelFilter::current() >= LevelFilter::TRACE && !tracing::Span::current().is_none();
        may_be_traced.then(Arc::default)
    }

    /// The writer has taken the request.
    pub(crate) fn taken(&self, at: Instant) {
        let _ = self.taken.set(at);
    }

    /// The request is on stable storage.
    pub(crate) fn synced(&self, sync: SyncTime) {
        let _ = self.synced.set(sync);
    }

    /// Reports what was noted, for a request that was queued at some time.
    pub(crate) fn report(&self, queued_at: Instant) {
        let now = Instant::now();
        if let Some(&taken) = self.taken.get() {
            report(Layer::WriterQueue, taken - queued_at, now - taken);
        }
        if let Some(&SyncTime { at, took }) = self.synced.get() {
            report(Layer::LogSync, took, now - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::{block_on, write_commands};
    use kinfolk_core::graph::{CheckStore, Edge, EdgeAction, EdgeCommand, EdgeList, EdgeStore, Side};
    use kinfolk_core::{EdgeKind, Frontier, Id, IdKind};

    use super::*;
    use crate::{Embedded, Settings};

    #[test]
    fn numbers_are_places() {
        for (at, layer) in Layer::ALL.into_iter().enumerate() {
            assert_eq!(layer as usize, at);
        }
    }

    #[test]
    fn each_layer_counts_what_passes_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let edge = |followee| Edge { follower: Id::Integer(1), followee: Id::Integer(followee) };
        let counts = |store: &Embedded| Layer::ALL.map(|layer| store.store.layers.snapshot(layer).count());
        assert_eq!(counts(&store), [0; 4]);
        for followee in 2..5 {
            let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge: edge(followee) }];
            write_commands(&store, EdgeKind::Follow, &commands, 9).unwrap();
            // Repeated, it waits for the writer too, but syncs nothing.
            write_commands(&store, EdgeKind::Follow, &commands, 9).unwrap();
        }
        assert_eq!(counts(&store), [6, 3, 0, 0]);
        let list = EdgeList { kind: EdgeKind::Follow, side: Side::Following, of: Id::Integer(1) };
        block_on(store.list(list, None, 9, Frontier::EMPTY)).unwrap();
        block_on(store.since(EdgeKind::Follow, &[edge(2)], Frontier::EMPTY)).unwrap();
        assert_eq!(counts(&store), [6, 3, 2, 0]);
        assert_eq!(store.contains_now(EdgeKind::Follow, edge(2), Frontier::EMPTY), Some(true));
        block_on(store.contains(EdgeKind::Follow, &[edge(2); BULK_MIN - 1], Frontier::EMPTY)).unwrap();
        assert_eq!(counts(&store), [6, 3, 2, 0], "single checks and small bulks are not measured");
        block_on(store.contains(EdgeKind::Follow, &[edge(2); BULK_MIN], Frontier::EMPTY)).unwrap();
        assert_eq!(counts(&store), [6, 3, 2, BULK_MIN as u64]);
    }
}
