//! The buffers that a connection needs while it has something to do. An idle connection has none: they are kept per
//! thread and lent.

use std::cell::RefCell;

use super::batch::Batch;
use super::checks::Checks;
use super::reply::Output;
use super::writes::Writes;

/// How much is read at once.
pub(super) const READ_BYTES: usize = 32 << 10;
/// A workspace that has grown beyond this is given back to the system.
const WORKSPACE_BYTES_MAX: usize = 512 << 10;
/// What a busy connection usually has for its commands; beyond this, it is counted.
const BUSY_BYTES_FREE: usize = 192 << 10;
/// How many workspaces a thread keeps.
const SPARE_MAX: usize = 64;

/// Buffers for one batch of commands.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// What was received.
    pub input: Vec<u8>,
    pub batch: Batch,
    pub writes: Writes,
    pub checks: Checks,
    /// What is to be sent.
    pub output: Output,
}

/// The commands of a busy connection: either counted at once, or only if it has to wait for its client.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyBytes {
    pub counted: usize,
    pub uncounted: usize,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "a workspace is moved often, as a pointer")]
    static SPARE: RefCell<Vec<Box<Workspace>>> = const { RefCell::new(Vec::new()) };
}

impl Workspace {
    /// An empty one, used before if possible.
    pub(crate) fn lend() -> Box<Self> {
        let mut workspace = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        if workspace.input.capacity() == 0 {
            workspace.input.reserve_exact(READ_BYTES);
        }
        workspace
    }

    /// How many bytes of commands its connection has while it is busy.
    pub(crate) fn busy_bytes(input: &Vec<u8>, batch: &Batch) -> BusyBytes {
        let bytes = input.capacity() + batch.capacity_bytes();
        if bytes > BUSY_BYTES_FREE {
            BusyBytes { counted: bytes, uncounted: 0 }
        } else {
            BusyBytes { counted: 0, uncounted: bytes }
        }
    }

    /// Returns it to the thread, with anything that is still in it.
    pub(crate) fn give_back(mut self: Box<Self>) {
        let waiting = self.writes.capacity_bytes() + self.checks.capacity_bytes();
        let commands = self.input.capacity() + self.batch.capacity_bytes() + waiting;
        let bytes = commands + self.output.bytes.capacity();
        // Writes that were never committed, or checks without a reply, belong to a connection that has failed.
        if bytes > WORKSPACE_BYTES_MAX || !self.writes.is_empty() || !self.checks.is_empty() {
            return;
        }
        if self.input.capacity() > READ_BYTES {
            self.input = Vec::new();
        }
        self.input.clear();
        self.batch.clear();
        self.output.bytes.clear();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_MAX {
                spare.push(self);
            }
        });
    }
}
