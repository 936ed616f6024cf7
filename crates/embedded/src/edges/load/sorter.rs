//! An external sort: fills memory, sorts, spills to a run file in the background, merges the runs at the end.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use kinfolk_core::{Error, Result};

use super::run::{Record, RunReader, RunWriter};

/// Sorts any number of records with bounded memory.
pub(crate) struct Sorter<R> {
    folder: PathBuf,
    capacity: usize,
    buffer: Vec<R>,
    pub runs: Vec<PathBuf>,
    /// The spill in flight, with the buffer that comes back from it.
    spill: Option<JoinHandle<Result<Vec<R>>>>,
}

impl<R: Record> Sorter<R> {
    /// A sorter that keeps its runs in a folder and uses about so much memory, half of it for the spill in flight.
    pub(crate) fn new(folder: &Path, memory_bytes: usize) -> Self {
        let capacity = (memory_bytes / 2 / size_of::<R>()).max(1_024);
        Self { folder: folder.to_path_buf(), capacity, buffer: Vec::new(), runs: Vec::new(), spill: None }
    }

    /// Goes on with runs that were spilled before.
    pub(crate) fn with_runs(mut self, runs: Vec<PathBuf>) -> Self {
        self.runs = runs;
        self
    }

    /// Whether the next push spills, which makes what was pushed before durable.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() == self.capacity
    }

    /// Takes a record.
    #[inline]
    pub(crate) fn push(&mut self, record: R) -> Result<()> {
        if self.is_full() {
            self.spill()?;
        }
        if self.buffer.capacity() == 0 {
            // All at once: growing step by step would copy it several times. Memory is taken as it is filled.
            self.buffer.reserve_exact(self.capacity);
        }
        self.buffer.push(record);
        Ok(())
    }

    /// Spills what is in memory in the background; waits for the spill before.
    pub(crate) fn spill(&mut self) -> Result<()> {
        let returned = self.wait()?;
        let mut records = std::mem::replace(&mut self.buffer, returned);
        if records.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(format!("run-{:05}", self.runs.len()));
        self.runs.push(path.clone());
        let work = move || {
            let mut writer = RunWriter::create(&path)?;
            for record in MergedHalves::sort(&mut records) {
                writer.push(record)?;
            }
            writer.finish()?;
            records.clear();
            Ok(records)
        };
        self.spill = Some(std::thread::spawn(work));
        Ok(())
    }

    /// Waits until all spilled runs are durable.
    pub(crate) fn wait(&mut self) -> Result<Vec<R>> {
        match self.spill.take() {
            None => Ok(Vec::new()),
            Some(spill) => spill.join().unwrap_or_else(|_| Err(Error::storage("sorting failed"))),
        }
    }

    /// All records in order. What is in memory stays there, so that this can't be done again after a crash.
    pub(crate) fn finish(mut self) -> Result<Merge<R>> {
        self.wait()?;
        let mut merge = Merge::open(&self.runs)?;
        let mut records = std::mem::take(&mut self.buffer);
        sort_halves(&mut records);
        let middle = records.len() / 2;
        let records = Arc::new(records);
        merge.push(Rest::Memory(Arc::clone(&records), 0..middle))?;
        merge.push(Rest::Memory(Arc::clone(&records), middle..records.len()))?;
        Ok(merge)
    }
}

/// Sorts the lower and the upper half, each by itself, on a thread each.
fn sort_halves<R: Record>(records: &mut [R]) {
    let middle = records.len() / 2;
    let (low, high) = records.split_at_mut(middle);
    std::thread::scope(|scope| {
        scope.spawn(|| low.sort_unstable());
        high.sort_unstable();
    });
}

/// Two sorted halves as one sorted whole.
struct MergedHalves<'a, R> {
    low: &'a [R],
    high: &'a [R],
}

impl<'a, R: Record> MergedHalves<'a, R> {
    fn sort(records: &'a mut [R]) -> Self {
        sort_halves(records);
        let (low, high) = records.split_at(records.len() / 2);
        Self { low, high }
    }
}

impl<R: Record> Iterator for MergedHalves<'_, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let from_low = match (self.low.first(), self.high.first()) {
            (Some(low), Some(high)) => low <= high,
            (low, _) => low.is_some(),
        };
        let half = if from_low { &mut self.low } else { &mut self.high };
        half.split_off_first().copied()
    }
}

impl<R> Drop for Sorter<R> {
    /// Nothing is written any more once a sorter is gone: its folder may be removed next.
    fn drop(&mut self) {
        if let Some(spill) = self.spill.take() {
            let _ = spill.join();
        }
    }
}

/// Merges sorted runs.
pub(crate) struct Merge<R> {
    heap: BinaryHeap<Head<R>>,
}

struct Head<R> {
    record: R,
    rest: Rest<R>,
}

/// What follows in a run.
enum Rest<R> {
    /// In a file.
    File(RunReader<R>),
    /// In a part of memory.
    Memory(Arc<Vec<R>>, Range<usize>),
}

impl<R: Record> Rest<R> {
    fn next(&mut self) -> Result<Option<R>> {
        match self {
            Self::File(run) => run.next(),
            Self::Memory(records, left) => Ok(left.next().and_then(|at| records.get(at).copied())),
        }
    }
}

impl<R: Ord> Ord for Head<R> {
    /// The heap's greatest is the smallest record.
    fn cmp(&self, other: &Self) -> Ordering {
        other.record.cmp(&self.record)
    }
}

impl<R: Ord> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Ord> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.record == other.record
    }
}

impl<R: Ord> Eq for Head<R> {}

impl<R: Record> Merge<R> {
    /// Starts to merge runs.
    pub(crate) fn open(runs: &[PathBuf]) -> Result<Self> {
        let mut merge = Self { heap: BinaryHeap::with_capacity(runs.len()) };
        for path in runs {
            merge.push(Rest::File(RunReader::open(path)?))?;
        }
        Ok(merge)
    }

    fn push(&mut self, mut rest: Rest<R>) -> Result<()> {
        if let Some(record) = rest.next()? {
            self.heap.push(Head { record, rest });
        }
        Ok(())
    }
}

impl<R: Record> Iterator for Merge<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = self.heap.peek_mut()?;
        let record = head.record;
        match head.rest.next() {
            Ok(Some(following)) => head.record = following,
            Ok(None) => {
                std::collections::binary_heap::PeekMut::pop(head);
            }
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::PairRecord;
    use super::*;

    #[test]
    fn sorts_more_than_fits_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), 0);
        let mut model: Vec<_> = (0..10_000u64)
            .map(|n| PairRecord {
                follower: n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
                followee: n % 10,
                since: n % 3,
            })
            .collect();
        for &record in &model {
            sorter.push(record).unwrap();
        }
        assert!(sorter.runs.len() > 5);
        let sorted: Vec<_> = sorter.finish().unwrap().map(Result::unwrap).collect();
        model.sort_unstable();
        assert_eq!(sorted, model);
    }

    #[test]
    fn nothing_sorts_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Sorter::<PairRecord<u128>>::new(folder.path(), 0).finish().unwrap().count(), 0);
    }
}
