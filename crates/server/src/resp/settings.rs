//! What a deployment sets about the Redis protocol.

use std::time::Duration;

use super::frame::FrameLimits;

/// Limits and sizes. Every one has a default that suits most.
#[derive(Clone, Debug)]
pub struct RespSettings {
    /// How many threads serve connections at most. Connections gather on as few as their load needs.
    pub threads: usize,
    /// How many connections there may be at once.
    pub connections_max: usize,
    /// How many of them one service may have, over all that hold a key of its name.
    pub service_connections_max: usize,
    /// How many of them one end user may have.
    pub user_connections_max: usize,
    /// How large a command of a known caller may be.
    pub frame: FrameLimits,
    /// How large a command may be before the caller is known.
    pub unauthenticated_frame: FrameLimits,
    /// How many bytes of replies wait before the next command of their connection is not run until they are sent.
    pub output_bytes_max: usize,
    /// How many reads of clients that cache are remembered, over all connections.
    pub tracking_items_max: usize,
    /// How many bytes of commands a transaction queues.
    pub transaction_bytes_max: usize,
    /// How many bytes all connections together hold for unfinished commands, open transactions and replies that are not
    /// taken.
    pub memory_bytes_max: usize,
    /// How many of them one service's connections hold.
    pub service_memory_bytes_max: usize,
    /// How many of them one end user's connections hold, or those of all clients that have not authenticated.
    pub user_memory_bytes_max: usize,
    /// How many of them one connection holds.
    pub connection_memory_bytes_max: usize,
    /// How long a write may make no progress while the client takes no replies.
    pub write_timeout: Duration,
    /// How long a connection may be silent; without a value, for ever.
    pub idle_max: Option<Duration>,
    /// How long a command may take to arrive, and how long a transaction may be open.
    pub unfinished_max: Duration,
    /// How long a client may take to say who it is, where it must.
    pub unauthenticated_max: Duration,
    /// How long connections have to end when the service stops.
    pub drain_max: Duration,
    /// How long a command takes that is kept in the slow log; without a value, none is.
    pub slow_log_threshold: Option<Duration>,
    /// How many commands the slow log has at most.
    pub slow_log_length: usize,
    /// Of how many batches of commands there is a span: all with 1, none with 0.
    pub trace_sample: f64,
}

impl Default for RespSettings {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            connections_max: 20_000,
            service_connections_max: 10_000,
            user_connections_max: 100,
            frame: FrameLimits::DEFAULT,
            unauthenticated_frame: FrameLimits::UNAUTHENTICATED,
            output_bytes_max: 64 << 10,
            tracking_items_max: 1_000_000,
            transaction_bytes_max: 4 << 20,
            memory_bytes_max: 512 << 20,
            service_memory_bytes_max: 256 << 20,
            user_memory_bytes_max: 32 << 20,
            connection_memory_bytes_max: 16 << 20,
            write_timeout: Duration::from_secs(30),
            idle_max: None,
            unfinished_max: Duration::from_secs(60),
            unauthenticated_max: Duration::from_secs(60),
            drain_max: Duration::from_secs(10),
            slow_log_threshold: Some(Duration::from_millis(10)),
            slow_log_length: 128,
            trace_sample: 0.0,
        }
    }
}
