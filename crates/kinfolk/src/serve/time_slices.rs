//! Short time slices of the processor for the threads of a server.
//!
//! A thread that wakes up waits until the one that runs has used up its slice. And a thread of low priority that is put
//! aside in the middle of a turn, with a lock that others want, comes back after a time that grows with its slice. Decision 26
//! has the measurements.

use std::io;
use std::time::Duration;

/// The shortest that Linux gives.
const SLICE: Duration = Duration::from_micros(100);

/// Shortens the slices of the calling thread, and of all that are started by it from now on. A kernel that does not know slices of
/// a thread's own (before Linux 6.12) leaves everything as it is, and so does this for a thread with another policy than the usual two.
pub(super) fn shorten() -> io::Result<()> {
    let mut attributes = attributes()?;
    let is_usual = [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&attributes.sched_policy.cast_signed());
    if is_usual {
        attributes.sched_runtime = SLICE.as_nanos() as u64;
        set_attributes(&attributes)?;
    }
    Ok(())
}

/// How the calling thread is scheduled.
#[expect(unsafe_code, reason = "no safe interface to this system call: decision 26")]
fn attributes() -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>() as u32;
    let mut attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes to the structure, which is as long and not shared; thread 0 is the caller.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if done == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

/// Changes how the calling thread is scheduled.
#[expect(unsafe_code, reason = "no safe interface to this system call: decision 26")]
fn set_attributes(attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the structure says of itself, which is its length; thread 0 is the caller.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_inherit_slices_and_nothing_else_changes() {
        let changed = thread::spawn(|| {
            rustix::process::nice(3).unwrap();
            // A container may forbid either.
            let before = attributes().ok()?;
            shorten().ok()?;
            let inherited = thread::spawn(|| attributes().unwrap()).join().unwrap();
            Some((before, attributes().unwrap(), inherited))
        });
        let Some((before, after, inherited)) = changed.join().unwrap() else { return };
        for changed in [&after, &inherited] {
            assert_eq!(changed.sched_policy, before.sched_policy);
            assert_eq!(changed.sched_nice, before.sched_nice);
            assert_eq!(changed.sched_priority, before.sched_priority);
            assert_eq!(changed.sched_flags, before.sched_flags);
            assert_eq!(changed.sched_runtime, after.sched_runtime);
        }
        let is_usual = before.sched_policy.cast_signed() == libc::SCHED_OTHER;
        // A kernel without slices of a thread's own says 0 before and after.
        if is_usual && before.sched_runtime > 0 {
            assert_eq!(after.sched_runtime, SLICE.as_nanos() as u64);
        }
    }
}
