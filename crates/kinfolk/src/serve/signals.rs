//! The signals that a server knows: SIGTERM and SIGINT end it, SIGHUP makes it read its files again. Long work on a
//! folder ends on all of them.

use std::io::{self, Write};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals on their way in.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To end.
    Stop,
    /// To read the files again.
    Reload,
}

impl Signals {
    /// Listens from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next wish.
    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.hang_up.recv() => Wish::Reload,
        }
    }

    /// From now on another wish to end is obeyed at once, whatever is still going on. A thread of its own waits for
    /// it, as the rest of the process may be busy with closing.
    pub fn end_at_once_on_the_next() -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _entered = runtime.enter();
            Self::new()?
        };
        std::thread::Builder::new().name("kinfolk-signals".to_owned()).spawn(move || {
            runtime.block_on(signals.stop());
            let message = "ended at once by a second signal; what was acknowledged is safe";
            // Nobody is left to tell where this can't be written.
            let _ = writeln!(io::stderr(), "kinfolk: {message}");
            std::process::exit(1)
        })?;
        Ok(())
    }

    /// The next wish to end.
    pub async fn stop(&mut self) {
        while self.next().await != Wish::Stop {}
    }
}
