//! Threads and futures for tests: a `block_on` that really parks, and threads whose panics keep their message.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Far longer than any store may take: a future that is silent for so long was forgotten, not slow.
const SILENCE_MAX: Duration = Duration::from_secs(60);

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future on this thread, which sleeps until the future is woken, be it from another thread.
///
/// It is polled only when woken: a store that forgets to wake is a failure after a minute, not a slow success.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let polled = Instant::now();
        while !signal.woken.swap(false, Ordering::Acquire) {
            let left = SILENCE_MAX.checked_sub(polled.elapsed()).expect("a future was never woken");
            thread::park_timeout(left);
        }
    }
}

/// Runs `task` on `count` threads that start together, and returns what each answered, in their order.
pub(crate) fn at_once<T: Send>(count: usize, task: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    let (start, task) = (&start, &task);
    thread::scope(|scope| {
        let spawn = |index| {
            scope.spawn(move || {
                start.wait();
                task(index)
            })
        };
        let threads: Vec<_> = (0..count).map(spawn).collect();
        // The payload of the thread is the message of the test; joining by the scope alone would lose it.
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Runs `main` while another thread repeats `background`, which runs at least once.
pub(crate) fn meanwhile<T>(background: impl Fn() + Sync, main: impl FnOnce() -> T) -> T {
    /// Stops the other thread even when `main` panics, since the scope waits for it.
    struct StopOnDrop<'a>(&'a AtomicBool);
    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            loop {
                background();
                if stop.load(Ordering::Acquire) {
                    break;
                }
            }
        });
        let output = {
            let _stop = StopOnDrop(&stop);
            main()
        };
        other.join().unwrap_or_else(|panic| resume_unwind(panic));
        output
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_future_may_be_woken_from_another_thread() {
        // Whether it is ready, and whom to wake when it is.
        let slot: Mutex<(bool, Option<Waker>)> = Mutex::new((false, None));
        let future = std::future::poll_fn(|context| {
            let mut slot = slot.lock().unwrap();
            slot.1 = Some(context.waker().clone());
            if slot.0 { Poll::Ready(5) } else { Poll::Pending }
        });
        let wake = || {
            let mut slot = slot.lock().unwrap();
            slot.0 |= slot.1.is_some();
            slot.1.take().into_iter().for_each(Waker::wake);
        };
        assert_eq!(meanwhile(wake, || block_on(future)), 5);
    }

    #[test]
    fn meanwhile_runs_both() {
        let runs = AtomicUsize::new(0);
        let background = || {
            runs.fetch_add(1, Ordering::SeqCst);
        };
        assert_eq!(meanwhile(background, || 7), 7);
        assert!(runs.load(Ordering::SeqCst) >= 1);
    }
}
