//! The fleet store: PostgreSQL shards, Redis Cluster and Kafka.
//!
//! Nothing is here yet. It will implement the ports of [`kinfolk_core::graph`] and pass the same conformance suite
//! as the embedded store.
