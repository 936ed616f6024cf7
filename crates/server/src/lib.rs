//! REST and RESP in front of the graph. It will know `kinfolk-core` and no adapter.
//!
//! Nothing is served yet: the engine came first. What a protocol needs from the core is there: error codes with
//! their HTTP statuses and RESP prefixes ([`kinfolk_core::ErrorCode`]), tokens, cursors, and operations that are
//! generic over the store ([`kinfolk_core::graph::Graph`]).
