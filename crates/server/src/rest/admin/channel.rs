//! A bounded channel from a blocking thread into the body of a response. If the thread ends without [`Sender::end`], the transfer
//! breaks off, so that the client does not take the response for complete.

use std::io::{self, Write};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

/// Size of a piece.
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of pieces that wait for the client.
const PIECES_MAX: usize = 8;

/// A part of a response.
enum Piece {
    Data(Bytes),
    /// The response is complete.
    End,
}

/// The thread's end.
#[derive(Clone)]
pub(crate) struct Sender(mpsc::Sender<Piece>);

/// The client's end.
pub(crate) struct Receiver(mpsc::Receiver<Piece>);

/// Creates both ends.
pub(crate) fn channel() -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    (Sender(sender), Receiver(receiver))
}

impl Sender {
    /// Sends a part; waits for room. Fails if the client has disconnected.
    pub(crate) fn send(&self, data: impl Into<Bytes>) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone");
        self.0.blocking_send(Piece::Data(data.into())).map_err(gone)
    }

    /// Sends a part if there is room for it.
    pub(crate) fn offer(&self, data: impl Into<Bytes>) {
        let _ = self.0.try_send(Piece::Data(data.into()));
    }

    /// Whether the client has disconnected.
    pub(crate) fn is_alone(&self) -> bool {
        self.0.is_closed()
    }

    /// Marks the response as complete.
    pub(crate) fn end(&self) {
        let _ = self.0.blocking_send(Piece::End);
    }
}

impl Receiver {
    /// Waits for the first part; none if the thread ends before.
    pub(crate) async fn first(&mut self) -> Option<Bytes> {
        match self.0.recv().await? {
            Piece::Data(data) => Some(data),
            Piece::End => {
                // An empty response: its end follows.
                let (sender, receiver) = mpsc::channel(1);
                let _ = sender.try_send(Piece::End);
                self.0 = receiver;
                Some(Bytes::new())
            }
        }
    }

    /// The parts as the body of a response, after those that were taken already.
    pub(crate) fn into_body(self, taken: Bytes) -> Body {
        let begin = (Some(taken).filter(|taken| !taken.is_empty()), Some(self.0));
        Body::from_stream(stream::unfold(begin, |(taken, pieces)| async {
            let mut pieces = pieces?;
            if let Some(taken) = taken {
                return Some((Ok(taken), (None, Some(pieces))));
            }
            match pieces.recv().await {
                Some(Piece::Data(data)) => Some((Ok(data), (None, Some(pieces)))),
                Some(Piece::End) => None,
                None => Some((Err(io::Error::other("the response is not complete")), (None, None))),
            }
        }))
    }
}

/// Writes into a response, in large parts.
pub(crate) struct Writer {
    sender: Sender,
    collected: Vec<u8>,
}

impl Writer {
    /// Into the response at the other end.
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender, collected: Vec::with_capacity(PIECE_BYTES) }
    }

    fn send(&mut self) -> io::Result<()> {
        if self.collected.is_empty() {
            return Ok(());
        }
        let next = Vec::with_capacity(PIECE_BYTES);
        self.sender.send(std::mem::replace(&mut self.collected, next))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.collected.len() >= PIECE_BYTES {
            self.send()?;
        }
        // However much is written at once, a piece is no larger than the others: what waits for a client is bounded.
        let (bytes, _) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.collected.len()));
        self.collected.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_large_write_is_sent_in_pieces_and_waits_for_the_client() {
        let (sender, mut receiver) = channel();
        let pieces = PIECES_MAX + 3;
        let writer = tokio::task::spawn_blocking(move || {
            let mut writer = Writer::new(sender.clone());
            writer.write_all(&vec![7; pieces * PIECE_BYTES - 1]).unwrap();
            writer.flush().unwrap();
            sender.end();
        });
        let mut bytes = 0;
        while let Some(Piece::Data(data)) = receiver.0.recv().await {
            assert!(data.len() <= PIECE_BYTES && receiver.0.len() <= PIECES_MAX);
            bytes += data.len();
        }
        writer.await.unwrap();
        assert_eq!(bytes, pieces * PIECE_BYTES - 1);
    }
}
