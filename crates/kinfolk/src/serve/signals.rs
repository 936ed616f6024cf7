//! The signals that a process knows: SIGTERM and SIGINT end it, SIGHUP makes a server read its files again. What long work of
//! other commands does on them is in `interrupt`.

use std::io::{self, Write};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals on their way in.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To end.
    Stop(StopSignal),
    /// To read the files again.
    Reload,
}

/// A signal that ends work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    HangUp = 1,
    Interrupt = 2,
    Terminate = 15,
}

impl StopSignal {
    /// The exit status of work that it has ended, as shells have it.
    pub(crate) fn exit_status(self) -> u8 {
        128 + self as u8
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HangUp => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// What the next signal asks of a server.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop(StopSignal::Terminate),
            _ = self.interrupt.recv() => SignalRequest::Stop(StopSignal::Interrupt),
            _ = self.hang_up.recv() => SignalRequest::Reload,
        }
    }

    /// The next signal, where there are no files to read again.
    pub(crate) async fn next_stop(&mut self) -> StopSignal {
        match self.next().await {
            SignalRequest::Stop(signal) => signal,
            SignalRequest::Reload => StopSignal::HangUp,
        }
    }

    /// From now on another request to end is obeyed at once, whatever is still going on.
    pub(crate) fn end_at_once_on_the_next() -> io::Result<()> {
        on_stop(|_| {
            let message = "ended at once by a second signal; what was acknowledged is safe";
            // Nobody is left to tell where this can't be written.
            let _ = writeln!(io::stderr(), "kinfolk: {message}");
            std::process::exit(1)
        })
    }

    /// The next request to end.
    pub(crate) async fn stop(&mut self) -> StopSignal {
        loop {
            if let SignalRequest::Stop(signal) = self.next().await {
                return signal;
            }
        }
    }
}

/// Does something on SIGTERM or SIGINT. A thread of its own waits for them, as the rest of the process may be busy.
pub(crate) fn on_stop(act: impl FnOnce(StopSignal) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::Builder::new().name("kinfolk-signals".to_owned()).spawn(move || {
        act(runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => StopSignal::Terminate,
                _ = interrupt.recv() => StopSignal::Interrupt,
            }
        }));
    })?;
    Ok(())
}
