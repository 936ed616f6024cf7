//! A proxy in front of PostgreSQL that cuts some connections when a COMMIT passes: before it is sent, or after.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// What a proxy has done.
#[derive(Debug, Default)]
pub struct Cuts {
    /// Commits that passed.
    pub commits: AtomicU64,
    /// Connections that were cut before the commit was sent.
    pub before: AtomicU64,
    /// Connections that were cut after the commit was sent, and before its reply.
    pub after: AtomicU64,
    /// Locks of shards that were taken by connections that have committed a write.
    pub trusted: AtomicU64,
    /// The same by connections that have not.
    pub untrusted: AtomicU64,
}

/// A proxy, until it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    pub cuts: Arc<Cuts>,
    /// While it is set, no reply passes.
    pub frozen: watch::Sender<bool>,
    _runtime: Runtime,
}

impl Proxy {
    /// In front of a server; of every `every` commits one is cut, and of 0 none.
    pub fn start(server: SocketAddr, every: Arc<AtomicU64>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(Cuts::default());
        let shared = Arc::clone(&cuts);
        let frozen = watch::Sender::new(false);
        let freeze = frozen.subscribe();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (cuts, every, freeze) = (Arc::clone(&shared), Arc::clone(&every), freeze.clone());
                tokio::spawn(async move {
                    // A connection that ends badly is what this is for.
                    _ = relay(client, server, (&cuts, &every), freeze).await;
                });
            }
        });
        Self { address, cuts, frozen, _runtime: runtime }
    }
}

async fn relay(
    client: TcpStream,
    server: SocketAddr,
    (cuts, every): (&Cuts, &AtomicU64),
    mut freeze: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let replies = tokio::spawn(async move {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
            if freeze.wait_for(|frozen| !frozen).await.is_err()
                || to_client.write_all(&bytes[..count]).await.is_err()
            {
                break;
            }
        }
    });
    let mut bytes = vec![0; 64 << 10];
    let mut has_written = false;
    loop {
        let count = from_client.read(&mut bytes).await?;
        if count == 0 {
            break;
        }
        let sent = &bytes[..count];
        // Only the commits of batches: they turn the timeout off first.
        let is_commit = sent.windows(12).any(|window| window == b"= 0; COMMIT\0");
        let says = |text: &[u8]| sent.windows(text.len()).any(|window| window == text);
        // The next statement is sent only when the first write was answered.
        has_written |= says(b"'connected'");
        if says(b"BEGIN ISOLATION LEVEL READ COMMITTED") {
            let locks = if has_written { &cuts.trusted } else { &cuts.untrusted };
            locks.fetch_add(1, Ordering::SeqCst);
        }
        let turn = if is_commit { cuts.commits.fetch_add(1, Ordering::SeqCst) } else { 1 };
        let every = every.load(Ordering::SeqCst);
        if is_commit && every > 0 && turn.is_multiple_of(every) {
            // No reply from here on.
            replies.abort();
            if (turn / every).is_multiple_of(2) {
                cuts.before.fetch_add(1, Ordering::SeqCst);
            } else {
                to_server.write_all(sent).await?;
                cuts.after.fetch_add(1, Ordering::SeqCst);
            }
            return Ok(());
        }
        to_server.write_all(sent).await?;
    }
    Ok(())
}
