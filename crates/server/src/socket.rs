//! What every accepted socket is set to, whichever protocol it serves. Reads and writes nothing.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// How long a client that sends no more may wait for what can be much work: it looks the same as one that is gone.
pub(crate) const LEAVING_MAX: Duration = Duration::from_secs(1);

/// How long a silent peer is left alone before it is asked whether it is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
/// How long until it is asked again.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// Responses leave at once, and a peer that has vanished is noticed. A socket that refuses these options is served, too.
pub(crate) fn prepare(socket: &TcpStream) {
    // Responses are written whole, so there is nothing to wait for.
    let _ = socket.set_nodelay(true);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    let _ = SockRef::from(socket).set_tcp_keepalive(&keepalive);
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn an_accepted_socket_is_kept_alive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (socket, _) = accepted.unwrap();
        assert!(!SockRef::from(&socket).keepalive().unwrap());
        prepare(&socket);
        assert!(SockRef::from(&socket).keepalive().unwrap() && socket.nodelay().unwrap());
        drop(client);
    }
}
