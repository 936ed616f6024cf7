//! The table of all settings: key, flag, default and description of each, and the type that holds their values.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use kinfolk_core::IdKind;
use kinfolk_core::suggestions::Ranking;
use kinfolk_server::EffectiveSetting;

use super::connection::{ConnectionString, Hosts, Secret};
use super::value::{
    Bytes, Count, Fraction, Limit, LogFormat, Names, Origins, Role, SaslMechanism, Span, Value, Within,
};
use super::{Reach, Setting, Texts};
use crate::failure::UsageError;

/// Generates the table and the types from one list: `key: Type = default, flag, value name, reach;`
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])+
        $section:ident: $struct:ident {
            $(
                #[doc = $help:literal]
                $name:ident: $type:ty = $default:literal, $flag:literal, $value:literal, $reach:ident;
            )+
        }
    )+) => {
        /// The effective configuration.
        #[derive(Clone, Debug)]
        #[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "the settings of the fleet are known everywhere"))]
        pub(crate) struct Configuration {
            $($(#[doc = $about])+ pub(crate) $section: $struct,)+
            /// All settings as texts, without secrets.
            pub(crate) effective: Vec<EffectiveSetting>,
        }

        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug)]
            #[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "the settings of the fleet are known everywhere"))]
            pub(crate) struct $struct {
                $(#[doc = $help] pub(crate) $name: $type,)+
            }

            impl $struct {
                const ABOUT: &str = concat!($($about),+).trim_ascii();
            }
        )+

        impl Configuration {
            /// Parses the texts.
            pub(crate) fn from_texts(texts: &Texts) -> Result<Self> {
                Ok(Self {
                    $($section: $struct {
                        $($name: value(texts, stringify!($section), stringify!($name))?,)+
                    },)+
                    effective: super::print::effective(texts),
                })
            }
        }

        /// All settings, section by section.
        pub(crate) static SETTINGS: &[Setting] = &[$($(
            Setting {
                section: stringify!($section),
                about: $struct::ABOUT,
                name: stringify!($name),
                flag: $flag,
                value_name: $value,
                reach: Reach::$reach,
                default: $default,
                help: $help.trim_ascii(),
                switch: <$type as Value>::SWITCH,
                canonical: |text| <$type as Value>::parse(text).map(|value| value.text()),
                literal: |text| <$type as Value>::parse(text).map_or_else(|reason| reason, |value| value.literal()),
            },
        )+)+];
    };
}

fn value<T: Value>(texts: &Texts, section: &str, name: &str) -> Result<T> {
    T::parse(texts.text(section, name))
        .map_err(|reason| UsageError(format!("{section}.{name}: {reason}")).into())
}

settings! {
    /// Where the graph is kept.
    data: Data {
        /// The folder of the graph; one process at a time can open it
        folder: PathBuf = "./kinfolk-data", "data", "DIR", Everywhere;
        /// The kind of ids, integer or uuid; chosen when the graph is created [default: integer]
        ids: Option<IdKind> = "", "ids", "KIND", Everywhere;
    }
    /// A fleet of PostgreSQL databases that keeps the graph, instead of a folder. `kinfolk fleet init` creates it. A
    /// binary has this profile only if it was built with the feature `fleet`. The first two have no flags, because
    /// connection strings may hold passwords; nothing prints those.
    fleet: Fleet {
        /// The connection string of the catalog's database; names a fleet to serve instead of a folder
        catalog: Option<ConnectionString> = "", "fleet-catalog", "CONNECTION", Nowhere;
        /// The connection string of each host by its name: a table of the file, or NAME=CONNECTION, separated by semicolons
        hosts: Hosts = "", "fleet-hosts", "HOSTS", Nowhere;
        /// The certificates of the databases' authorities, as PEM; with them, connections are encrypted
        ca_file: Option<PathBuf> = "", "fleet-ca-file", "FILE", Server;
        /// Connections to each host for reads
        read_connections: Count = "8", "fleet-read-connections", "N", Server;
        /// Connections to each host for writes and projection
        write_connections: Count = "8", "fleet-write-connections", "N", Server;
        /// Threads for the work of the store
        threads: Count = "2", "fleet-threads", "N", Server;
        /// Maximum number of changes that each shard keeps in its log; log.keep is their maximum age
        log_changes: Count = "1000000", "fleet-log-changes", "N", Server;
        /// Number of changes in the log of a shard at which its writes are refused, because nobody relays or projects them
        log_changes_max: Count = "10000000", "fleet-log-changes-max", "N", Server;
        /// Memory for filters, which know without asking a host that an edge does not exist; 0 turns them off
        filter_memory: Bytes = "0", "fleet-filter-memory", "SIZE", Server;
        /// The folder that filters are saved in, so that a restart need not read all edges [default: not saved]
        filter_folder: Option<PathBuf> = "", "fleet-filter-folder", "DIR", Server;
        /// Maximum number of rows a second that this process compares with the truth, in the roles reconcile and all; 0 turns that off
        reconcile_rows: u32 = "2000", "fleet-reconcile-rows", "N", Server;
    }
    /// The Kafka topic of a fleet, which carries its changes to the processes that project and to other systems. Without
    /// brokers, changes are projected straight from the logs of the shards.
    kafka: Kafka {
        /// The brokers to ask first, as HOST:PORT, separated by commas
        brokers: Names = "", "kafka-brokers", "BROKERS", Server;
        /// The name of the topic, which has a partition for each shard; created if it does not exist
        topic: String = "kinfolk.changes", "kafka-topic", "NAME", Server;
        /// Number of brokers that keep each partition, when the topic is created
        replication: Count = "3", "kafka-replication", "N", Server;
        /// The certificates of the brokers' authorities, as PEM; with them, connections are encrypted
        ca_file: Option<PathBuf> = "", "kafka-ca-file", "FILE", Server;
        /// The SASL mechanism: plain, scram-sha-256 or scram-sha-512 [default: none]
        sasl: Option<SaslMechanism> = "", "kafka-sasl", "MECHANISM", Server;
        /// The SASL user
        username: String = "", "kafka-username", "NAME", Server;
        /// The SASL password; it has no flag, and nothing prints it
        password: Secret = "", "kafka-password", "PASSWORD", Nowhere;
    }
    /// The Redis Cluster of a fleet, or a single server, which holds the following sets of users that are checked often, and the
    /// budgets that all processes share. Without nodes, checks ask the shards, and every process limits rates by itself.
    redis: Redis {
        /// Some nodes, as HOST:PORT, separated by commas; the others are found through them
        nodes: Names = "", "redis-nodes", "NODES", Server;
        /// The user to sign in as [default: the default user]
        username: String = "", "redis-username", "NAME", Server;
        /// The password to sign in with; it has no flag, and nothing prints it
        password: Secret = "", "redis-password", "PASSWORD", Nowhere;
        /// The certificates of the nodes' authorities, as PEM; with them, connections are encrypted
        ca_file: Option<PathBuf> = "", "redis-ca-file", "FILE", Server;
        /// Maximum time that a check waits for a node before it asks the shard
        timeout: Span = "50 ms", "redis-timeout", "TIME", Server;
        /// How long the following set of a user is kept after it was read from its shard
        keep: Span = "1 h", "redis-keep", "TIME", Server;
        /// Maximum number of following sets that this process reads from the shards in a second
        fills: Count = "500", "redis-fills", "N", Server;
    }
    /// The REST interface.
    http: Http {
        /// The address for REST
        address: SocketAddr = "127.0.0.1:7400", "http", "ADDR", Server;
        /// Threads for REST requests
        threads: Count = "2", "http-threads", "N", Server;
        /// Maximum number of open connections; further ones wait
        connections: Count = "20000", "http-connections", "N", Server;
        /// Maximum time of a request; streams and bulk work are not limited
        timeout: Span = "10 s", "http-timeout", "TIME", Server;
        /// Whether the console is served, at /console of the address for REST
        console: bool = "true", "console", "", Server;
        /// Origins of web pages that may call the API, such as https://example.org; none by default
        origins: Origins = "", "http-origins", "ORIGINS", Server;
    }
    /// The Redis protocol.
    resp: Resp {
        /// The address for the Redis protocol
        address: SocketAddr = "127.0.0.1:7401", "resp", "ADDR", Server;
        /// Maximum number of threads for commands; connections use as few as their load needs [default: one per core]
        threads: Option<Count> = "", "resp-threads", "N", Server;
        /// Maximum number of open connections
        connections: Count = "20000", "resp-connections", "N", Server;
        /// Maximum number of connections of services whose keys have the same name
        key_connections: Count = "10000", "resp-key-connections", "N", Server;
        /// Maximum number of connections of one end user
        user_connections: Count = "100", "resp-user-connections", "N", Server;
        /// Reads of clients with a cache (CLIENT TRACKING) that are remembered; beyond that, keys are invalidated early
        tracked_reads: Count = "1000000", "resp-tracked-reads", "N", Server;
        /// Memory for incomplete commands, open transactions and unread replies of all connections
        memory: Bytes = "512 MiB", "resp-memory", "BYTES", Server;
        /// Maximum part of it for the connections of services whose keys have the same name
        key_memory: Bytes = "256 MiB", "resp-key-memory", "BYTES", Server;
        /// Maximum part of it for the connections of one end user, or of all clients that have not authenticated
        user_memory: Bytes = "32 MiB", "resp-user-memory", "BYTES", Server;
        /// Maximum part of it for one connection
        connection_memory: Bytes = "16 MiB", "resp-connection-memory", "BYTES", Server;
        /// Idle time after which a connection is closed; 0 for never [default: never]
        idle_timeout: Option<Span> = "", "resp-idle-timeout", "TIME", Server;
        /// Maximum time for a command to arrive and for a transaction to stay open
        unfinished_timeout: Span = "60 s", "resp-unfinished-timeout", "TIME", Server;
        /// How long a command takes that SLOWLOG shows; 0 for none
        slow_threshold: Span = "10 ms", "resp-slow-threshold", "TIME", Server;
        /// Maximum number of commands that SLOWLOG shows
        slow_commands: Count = "128", "resp-slow-commands", "N", Server;
    }
    /// The server process.
    server: Server {
        /// The role of this process in a fleet: api serves requests, relay sends changes to Kafka, project keeps followers and counts up to date, reconcile compares them with the truth and repairs them, all does everything
        role: Role = "all", "role", "ROLE", Server;
        /// How long to keep serving after the readiness check starts to fail, so that load balancers notice [default: 5 s for a process of a fleet that serves requests, otherwise 0 s]
        drain: Option<Span> = "", "drain", "TIME", Server;
        /// How long to wait for requests in flight when the process stops
        grace: Span = "30 s", "grace", "TIME", Server;
    }
    /// Encryption, for both protocols.
    tls: TlsFiles {
        /// The certificate chain as PEM, the server's own certificate first
        certificates: Option<PathBuf> = "", "tls-certificates", "FILE", Server;
        /// The private key of the certificate, as PEM
        key: Option<PathBuf> = "", "tls-key", "FILE", Server;
    }
    /// Authentication. Without any of these, every process on this machine has all permissions, and no other machine
    /// can connect.
    auth: Auth {
        /// The file of API keys, managed with 'kinfolk keys'
        keys: Option<PathBuf> = "", "auth-keys", "FILE", Server;
        /// The public keys that verify end users' tokens (JWT): a JWK set, or PEM
        token_keys: Option<PathBuf> = "", "auth-token-keys", "FILE", Server;
        /// Shared secrets that verify tokens signed with HS256, HS384 or HS512, one per line, at least 32 bytes each
        token_secret: Option<PathBuf> = "", "auth-token-secret", "FILE", Server;
        /// The accepted values of a token's aud; required with token_keys and token_secret
        audience: Names = "", "auth-audience", "NAMES", Server;
        /// The accepted values of a token's iss; any by default
        issuer: Names = "", "auth-issuer", "NAMES", Server;
        /// The accepted signature algorithms; HS256, HS384 and HS512 need token_secret
        algorithms: Names = "RS256,ES256,EdDSA", "auth-algorithms", "NAMES", Server;
        /// Maximum clock difference to the issuers of tokens
        leeway: Span = "30 s", "auth-leeway", "TIME", Server;
        /// Whether a token can grant the moderate scope
        moderators: bool = "false", "auth-moderators", "", Server;
    }
    /// Rate limits. They apply only with authentication.
    limits: Limits {
        /// Requests of each API key that has no limit of its own, such as 5000/s burst 10000
        key: Limit = "none", "limit-key", "RATE", Server;
        /// Requests per end user, over all connections
        user: Limit = "50/s burst 100", "limit-user", "RATE", Server;
        /// Follows, dismissals, posts and other changes per user, regardless of the caller; comments have a limit of their own
        changes: Limit = "1000/h burst 400", "limit-changes", "RATE", Server;
        /// Number of users whose limits are tracked
        remembered: Count = "100000", "limit-remembered", "N", Server;
    }
    /// The rules of the graph.
    graph: GraphRules {
        /// Maximum number of followees of a user
        following_limit: u32 = "10000", "following-limit", "N", Server;
    }
    /// Retention of the change log.
    log: Log {
        /// How long changes are kept. For an hour after a start, none is removed because of its age
        keep: Span = "7 d", "log-keep", "TIME", Server;
        /// Maximum size of the log. Changes that a start needs are kept beyond it
        keep_bytes: Bytes = "10 GiB", "log-keep-size", "SIZE", Server;
    }
    /// Protection against a wrong system clock: [why, and what to do](README.md#time).
    clock: ClockRules {
        /// An open store ignores clock jumps ahead that exceed this; 0 for no limit
        jump_max: Span = "1 h", "clock-jump-max", "TIME", Server;
        /// On opening, a store ignores a clock that is ahead of its newest change by more than this; 0 for no limit
        gap_max: Span = "1000 d", "clock-gap-max", "TIME", Server;
    }
    /// Suggestions of users to follow: [how they are computed](README.md#suggestions).
    suggest: Suggest {
        /// Interval between the starts of computations for all users; 0 for never
        every: Span = "12 h", "suggest-every", "TIME", Server;
        /// How long computed suggestions are served; older or missing ones are computed on request
        fresh: Span = "24 h", "suggest-fresh", "TIME", Server;
        /// Maximum number of followees that a computation on request considers, the most recent ones
        per_node: Count = "500", "suggest-per-node", "N", Server;
        /// The same for the computation for all users; 0 for all followees
        batch_per_node: u32 = "0", "suggest-batch-per-node", "N", Server;
        /// Which suggestions are stored, and their order: count, jaccard or adamic-adar
        ranking: Ranking = "count", "suggest-ranking", "RANKING", Server;
        /// Number of suggestions stored per user
        keep: Within<1, 1_000> = "100", "suggest-keep", "N", Server;
        /// Threads for the computation for all users [default: one per core]
        threads: Option<Within<1, 256>> = "", "suggest-threads", "N", Server;
    }
    /// Home feeds: [how they work](README.md#posts-and-feeds).
    feed: Feed {
        /// Authors with at least this many followers are pulled at read time; others are pushed to inboxes
        fan_out_threshold: u32 = "10000", "fan-out-threshold", "N", Server;
        /// Maximum number of posts in an inbox; older posts are read from the authors
        inbox_entries: Count = "200", "inbox-entries", "N", Server;
        /// Inboxes unread for this long are dropped; the next read rebuilds them
        inbox_idle: Span = "30 d", "inbox-idle", "TIME", Server;
        /// Memory for inboxes; the least recently read are evicted first
        inbox_memory: Bytes = "1 GiB", "inbox-memory", "SIZE", Server;
        /// Number of a new followee's recent posts that are added to the follower's inbox
        backfill_posts: u32 = "100", "backfill-posts", "N", Server;
    }
    /// Comments: [moderation, and what a purge erases](comments.md).
    comments: Comments {
        /// Maximum number of characters of a body
        body_chars_max: Within<1, 100_000> = "10000", "comment-body-chars-max", "N", Server;
        /// Maximum depth of a reply
        depth_max: Within<0, 50> = "50", "comment-depth-max", "N", Server;
        /// How long idempotency keys of comments are kept
        key_keep: Span = "7 d", "comment-key-keep", "TIME", Server;
        /// Bodies of purged comments are erased from all files within this time
        erase_after: Span = "24 h", "comment-erase-after", "TIME", Server;
        /// New comments per author, regardless of the caller
        author_rate: Limit = "30/m", "limit-author-comments", "RATE", Server;
        /// New comments per post, regardless of the author
        parent_rate: Limit = "100/s burst 1000", "limit-parent-comments", "RATE", Server;
    }
    /// Memory.
    cache: Cache {
        /// Memory for cached blocks of rows
        size: Bytes = "64 MiB", "cache", "SIZE", Server;
    }
    /// What goes to standard error.
    logging: Logging {
        /// error, warn, info, debug or trace; optionally per module, such as info,kinfolk_server=debug
        level: String = "info", "log-level", "LEVEL", Server;
        /// text or json
        format: LogFormat = "text", "log-format", "FORMAT", Server;
    }
    /// OpenTelemetry.
    tracing: Tracing {
        /// The collector for traces by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; none by default
        otlp_endpoint: Option<String> = "", "otlp-endpoint", "URL", Server;
        /// The fraction of requests to trace, from 0 to 1
        sample: Fraction = "0.01", "trace-sample", "FRACTION", Server;
    }
    /// The commands that talk to a server.
    client: Client {
        /// The server to use, unless --data names a folder
        url: String = "http://127.0.0.1:7400", "url", "URL", Everywhere;
        /// The file of the API key or token for the server; else the variable KINFOLK_API_KEY
        api_key_file: Option<PathBuf> = "", "api-key-file", "FILE", Everywhere;
        /// The certificates to trust, as PEM, instead of the default authorities
        ca_file: Option<PathBuf> = "", "ca-file", "FILE", Everywhere;
        /// Print the result as JSON: one document, or one in each line
        json: bool = "false", "json", "", Everywhere;
        /// Print no progress and no hints
        quiet: bool = "false", "quiet", "", Everywhere;
        /// Show at least the writes that this token covers; tokens that are printed cover it too
        token: Option<String> = "", "token", "TOKEN", Everywhere;
        /// Interval between progress lines when standard error is not a terminal
        progress_every: Span = "3 s", "progress-every", "TIME", Everywhere;
    }
}
