//! Where a server may listen: without authentication only where this machine alone can reach it.

use std::net::SocketAddr;

use kinfolk_core::{Error, Result};

/// Refuses an address that other machines can reach while authentication is off.
pub fn require_safe_binding(address: SocketAddr, access_is_open: bool) -> Result<()> {
    if !access_is_open || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(Error::InvalidInput {
        detail: format!(
            "{address} can be reached by others, but authentication is off: configure API keys or tokens, or \
             listen on 127.0.0.1"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_without_authentication() {
        for safe in ["127.0.0.1:7400", "127.8.9.1:1", "[::1]:7400", "[::ffff:127.0.0.1]:7400"] {
            require_safe_binding(safe.parse().unwrap(), true).unwrap();
        }
        for reachable in ["0.0.0.0:7400", "192.168.0.1:7400", "[::]:7400", "[::ffff:10.0.0.1]:7400"] {
            let address = reachable.parse().unwrap();
            let error = require_safe_binding(address, true).unwrap_err().to_string();
            assert!(error.contains(reachable) && error.contains("configure"), "{error}");
            require_safe_binding(address, false).unwrap();
        }
    }
}
