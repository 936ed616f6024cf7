//! The sockets, bound before anything else, so that a port in use is reported at once.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};

/// Bound sockets.
#[derive(Debug)]
pub(crate) struct Listeners {
    /// For REST.
    pub(crate) http: TcpListener,
    /// For the Redis protocol, if the process serves it.
    pub(crate) resp: Option<TcpListener>,
}

/// The URLs of the protocols.
pub(crate) struct Urls {
    pub(crate) http: String,
    pub(crate) redis: Option<String>,
}

impl Listeners {
    /// Binds the addresses.
    pub(crate) fn bind(http: SocketAddr, resp: Option<SocketAddr>) -> Result<Self> {
        let http = bind(http, "--http")?;
        Ok(Self { http, resp: resp.map(|resp| bind(resp, "--resp")).transpose()? })
    }

    /// The URLs of the sockets.
    pub(crate) fn urls(&self, is_encrypted: bool) -> Result<Urls> {
        let (http, redis) = if is_encrypted { ("https", "rediss") } else { ("http", "redis") };
        let resp = self.resp.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(Urls {
            http: format!("{http}://{}", self.http.local_addr()?),
            redis: resp.map(|address| format!("{redis}://{address}")),
        })
    }
}

fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    // The standard library sets SO_REUSEADDR: a port can be used again right after a restart.
    let listener = TcpListener::bind(address).map_err(|error| {
        let advice = if error.kind() == std::io::ErrorKind::AddrInUse {
            format!(
                "{address} is in use; stop the process that listens there or choose another port with {flag}"
            )
        } else {
            format!("could not listen on {address}; choose another address with {flag}")
        };
        anyhow::Error::new(error).context(advice)
    })?;
    listener.set_nonblocking(true).context("could not configure a socket")?;
    Ok(listener)
}
