//! Wakes and ends the threads that work in the background, and lowers their priority.

use std::cell::Cell;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Wakes a thread that works in the background, or ends it.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    awake: bool,
    stopping: bool,
}

impl Signal {
    /// There is something to do.
    pub(crate) fn wake(&self) {
        self.state.lock().awake = true;
        self.changed.notify_one();
    }

    /// There will be nothing more to do.
    pub(crate) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_one();
    }

    /// Whether it is time to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Waits for a wake-up, but not longer than given; false when it is time to end.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.awake && !state.stopping {
            self.changed.wait_for(&mut state, longest);
        }
        state.awake = false;
        !state.stopping
    }
}

/// Gives the calling thread less of the processor than others, where they want it too: requests come first.
pub(crate) fn lower_priority() {
    const NICENESS: i32 = 10;
    // Without the right to it, it works at the usual priority.
    let _ = rustix::process::nice(NICENESS);
    HAS_LOW_PRIORITY.set(true);
}

thread_local! {
    static HAS_LOW_PRIORITY: Cell<bool> = const { Cell::new(false) };
}

/// Pauses a thread of low priority that takes the same lock again and again. Such a thread is put aside when its time slice is over, for
/// tens of milliseconds on a busy machine, and threads that want the lock that it holds wait as long. A thread that has just slept
/// has its slice before it.
pub(crate) fn pause_between_locks() {
    const PAUSE: Duration = Duration::from_micros(50);
    if HAS_LOW_PRIORITY.get() {
        std::thread::sleep(PAUSE);
    }
}
