//! An external sort: fills memory, sorts, spills to a run file in the background, merges the runs at the end.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use kinfolk_core::{Error, Result};

use super::run::{Record, RunReader, RunWriter};

/// Sorts any number of records with bounded memory.
pub struct Sorter<R> {
    folder: PathBuf,
    capacity: usize,
    buffer: Vec<R>,
    runs: Vec<PathBuf>,
    /// The spill in flight, with the buffer that comes back from it.
    spill: Option<JoinHandle<Result<Vec<R>>>>,
}

impl<R: Record> Sorter<R> {
    /// A sorter that keeps its runs in a folder and uses about so much memory, half of it for the spill in flight.
    pub fn new(folder: &Path, memory_bytes: usize) -> Self {
        let capacity = (memory_bytes / 2 / size_of::<R>()).max(1_024);
        Self { folder: folder.to_path_buf(), capacity, buffer: Vec::new(), runs: Vec::new(), spill: None }
    }

    /// Goes on with runs that were spilled before.
    pub fn with_runs(mut self, runs: Vec<PathBuf>) -> Self {
        self.runs = runs;
        self
    }

    /// Whether the next push spills, which makes what was pushed before durable.
    pub fn is_full(&self) -> bool {
        self.buffer.len() == self.capacity
    }

    /// Takes a record.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
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
    pub fn spill(&mut self) -> Result<()> {
        let returned = self.wait()?;
        let mut records = std::mem::replace(&mut self.buffer, returned);
        if records.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(format!("run-{:05}", self.runs.len()));
        self.runs.push(path.clone());
        let work = move || {
            records.sort_unstable();
            let mut writer = RunWriter::create(&path)?;
            for &record in &records {
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
    pub fn wait(&mut self) -> Result<Vec<R>> {
        match self.spill.take() {
            None => Ok(Vec::new()),
            Some(spill) => {
                spill.join().unwrap_or_else(|_| Err(Error::Storage { detail: "sorting failed".into() }))
            }
        }
    }

    /// The runs so far; durable once [`Sorter::wait`] returned.
    pub fn runs(&self) -> &[PathBuf] {
        &self.runs
    }

    /// All records in order.
    pub fn finish(mut self) -> Result<Merge<R>> {
        self.spill()?;
        self.wait()?;
        Merge::open(&self.runs)
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
pub struct Merge<R> {
    heap: BinaryHeap<Head<R>>,
}

struct Head<R> {
    record: R,
    rest: RunReader<R>,
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
    pub fn open(runs: &[PathBuf]) -> Result<Self> {
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for path in runs {
            let mut rest = RunReader::open(path)?;
            if let Some(record) = rest.next()? {
                heap.push(Head { record, rest });
            }
        }
        Ok(Self { heap })
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
        assert!(sorter.runs().len() > 5);
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
