//! Signals: SIGTERM and SIGINT stop the process, SIGHUP reloads the files of a server. `interrupt` handles them during long
//! work of other commands.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Stop signals within this time are one request.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Received signals.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// Stop.
    Stop(StopSignal),
    /// Reload the files.
    Reload,
}

/// A signal that stops work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    HangUp = 1,
    Interrupt = 2,
    Terminate = 15,
}

impl StopSignal {
    /// The exit status of stopped work, as in shells.
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
    /// Starts to listen.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal, for a server.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop(StopSignal::Terminate),
            _ = self.interrupt.recv() => SignalRequest::Stop(StopSignal::Interrupt),
            _ = self.hang_up.recv() => SignalRequest::Reload,
        }
    }

    /// The next signal, for work without files to reload.
    pub(crate) async fn next_stop(&mut self) -> StopSignal {
        match self.next().await {
            SignalRequest::Stop(signal) => signal,
            SignalRequest::Reload => StopSignal::HangUp,
        }
    }

    /// Ends the process at once on the next stop signal. One that arrives together with a first, which was received just now, is
    /// the same request: `timeout` signals its process, and then the process group.
    pub(crate) fn end_at_once_on_the_next(first: Option<Instant>) -> io::Result<()> {
        on_stop(move |_| {
            if first.is_some_and(|first| first.elapsed() < SAME_REQUEST) {
                return;
            }
            let message = "ended at once by a second signal; acknowledged writes are safe";
            // A closed stderr cannot be reported.
            let _ = writeln!(io::stderr(), "kinfolk: {message}");
            std::process::exit(1)
        })
    }

    /// The next stop signal.
    pub(crate) async fn stop(&mut self) -> StopSignal {
        loop {
            if let SignalRequest::Stop(signal) = self.next().await {
                return signal;
            }
        }
    }
}

/// Calls `act` on each SIGTERM and SIGINT. A thread of its own waits for them, because the others may be busy.
pub(crate) fn on_stop(mut act: impl FnMut(StopSignal) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::Builder::new().name("kinfolk-signals".to_owned()).spawn(move || {
        loop {
            act(runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => StopSignal::Terminate,
                    _ = interrupt.recv() => StopSignal::Interrupt,
                }
            }));
        }
    })?;
    Ok(())
}
