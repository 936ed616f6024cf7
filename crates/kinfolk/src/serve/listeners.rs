//! The two sockets, bound before anything else is done: a port that is taken is told at once.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};

/// Bound sockets.
#[derive(Debug)]
pub(crate) struct Listeners {
    /// For REST.
    pub(crate) http: TcpListener,
    /// For the Redis protocol.
    pub(crate) resp: TcpListener,
}

impl Listeners {
    /// Binds both addresses.
    pub(crate) fn bind(http: SocketAddr, resp: SocketAddr) -> Result<Self> {
        Ok(Self { http: bind(http, "--http")?, resp: bind(resp, "--resp")? })
    }

    /// Where REST is.
    pub(crate) fn http_address(&self) -> Result<SocketAddr> {
        Ok(self.http.local_addr()?)
    }

    /// Where the Redis protocol is.
    pub(crate) fn resp_address(&self) -> Result<SocketAddr> {
        Ok(self.resp.local_addr()?)
    }
}

fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    // The standard library lets a port be used again right after a restart.
    let listener = TcpListener::bind(address).map_err(|error| {
        let advice = if error.kind() == std::io::ErrorKind::AddrInUse {
            format!("{address} is taken; stop what listens there or choose another port with {flag}")
        } else {
            format!("could not listen on {address}; choose another address with {flag}")
        };
        anyhow::Error::new(error).context(advice)
    })?;
    listener.set_nonblocking(true).context("a socket could not be set up")?;
    Ok(listener)
}
