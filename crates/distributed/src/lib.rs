//! The fleet store: PostgreSQL shards, Redis Cluster and Kafka.
