//! The client against the real server.
