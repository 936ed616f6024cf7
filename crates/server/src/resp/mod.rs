//! The Redis protocol: frames, commands, connections.
