//! The table of all settings: their keys, flags, defaults and descriptions, and the valid type that they become.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use kinfolk_core::IdKind;
use kinfolk_core::suggestions::Ranking;

use super::value::{Bytes, Count, Fraction, Limit, LogFormat, Origins, Role, Span, Value, Within, Words};
use super::{Reach, Setting, Texts};
use crate::failure::UsageError;

/// Makes the table and the types out of one list: `key: Type = default, flag, value name, reach;`
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
        pub struct Configuration {
            $($(#[doc = $about])+ pub $section: $struct,)+
        }

        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug)]
            pub struct $struct {
                $(#[doc = $help] pub $name: $type,)+
            }
        )+

        impl Configuration {
            /// The configuration that the texts make up.
            pub fn from_texts(texts: &Texts) -> Result<Self> {
                Ok(Self {
                    $($section: $struct {
                        $($name: value(texts, stringify!($section), stringify!($name))?,)+
                    },)+
                })
            }
        }

        /// All settings, section by section.
        pub static SETTINGS: &[Setting] = &[$($(
            Setting {
                section: stringify!($section),
                name: stringify!($name),
                flag: $flag,
                value_name: $value,
                reach: Reach::$reach,
                default: $default,
                help: $help.trim_ascii(),
                quoted: <$type as Value>::QUOTED,
                switch: <$type as Value>::SWITCH,
                canonical: |text| <$type as Value>::parse(text).map(|value| value.text()),
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
        /// The folder of the graph; one process owns it at a time
        folder: PathBuf = "./kinfolk-data", "data", "DIR", Everywhere;
        /// Which ids the graph uses, integer or uuid; it counts when the graph is made [default: integer]
        ids: Option<IdKind> = "", "ids", "KIND", Everywhere;
    }
    /// The REST interface.
    http: Http {
        /// Where REST listens
        address: SocketAddr = "127.0.0.1:7400", "http", "ADDR", Server;
        /// Threads that answer requests over HTTP
        threads: Count = "2", "http-threads", "N", Server;
        /// How many connections may be open at once; further ones wait
        connections: Count = "20000", "http-connections", "N", Server;
        /// How long a request may take; streams and bulk work take as long as they take
        timeout: Span = "10 s", "http-timeout", "TIME", Server;
        /// Web pages of which origins may call, such as https://example.org; none without it
        origins: Origins = "", "http-origins", "ORIGINS", Server;
    }
    /// The Redis protocol.
    resp: Resp {
        /// Where the Redis protocol listens
        address: SocketAddr = "127.0.0.1:7401", "resp", "ADDR", Server;
        /// Threads that answer commands [default: one a core]
        threads: Option<Count> = "", "resp-threads", "N", Server;
        /// How many connections may be open at once
        connections: Count = "20000", "resp-connections", "N", Server;
        /// How many of them may be of services that hold a key of the same name
        key_connections: Count = "10000", "resp-key-connections", "N", Server;
        /// How many of them one end user may have
        user_connections: Count = "100", "resp-user-connections", "N", Server;
        /// Memory for unfinished commands, open transactions and replies that are not read, of all connections together
        memory: Bytes = "512 MiB", "resp-memory", "BYTES", Server;
        /// How much of it the connections of services may hold whose keys have the same name
        key_memory: Bytes = "256 MiB", "resp-key-memory", "BYTES", Server;
        /// How much of it the connections of one end user may hold, or those of all clients that have not authenticated
        user_memory: Bytes = "32 MiB", "resp-user-memory", "BYTES", Server;
        /// How much of it one connection may hold
        connection_memory: Bytes = "16 MiB", "resp-connection-memory", "BYTES", Server;
        /// How long a connection may send nothing; 0 is for ever [default: for ever]
        idle_timeout: Option<Span> = "", "resp-idle-timeout", "TIME", Server;
        /// How long a command may take to arrive and a transaction may stay open
        unfinished_timeout: Span = "60 s", "resp-unfinished-timeout", "TIME", Server;
    }
    /// The process.
    server: Server {
        /// What this process does: all, or one role of a fleet
        role: Role = "all", "role", "ROLE", Server;
        /// How long to go on serving after the readiness check has begun to fail, for load balancers to notice
        drain: Span = "0 s", "drain", "TIME", Server;
        /// How long requests in flight may take to end when the process stops
        grace: Span = "30 s", "grace", "TIME", Server;
    }
    /// Encryption.
    tls: TlsFiles {
        /// The certificate and those that lead to a known authority, as PEM, the server's own first
        certificates: Option<PathBuf> = "", "tls-certificates", "FILE", Server;
        /// The private key of the certificate, as PEM
        key: Option<PathBuf> = "", "tls-key", "FILE", Server;
    }
    /// Who may ask.
    auth: Auth {
        /// The file of API keys; 'kinfolk keys' makes it
        keys: Option<PathBuf> = "", "auth-keys", "FILE", Server;
        /// The public keys of those who sign end users' tokens (JWT): a JWK set, or PEM
        token_keys: Option<PathBuf> = "", "auth-token-keys", "FILE", Server;
        /// Secrets that are shared with those who sign tokens by HS256, one a line, of at least 32 bytes each
        token_secret: Option<PathBuf> = "", "auth-token-secret", "FILE", Server;
        /// What this service is called in the tokens' aud; needed with token_keys and token_secret
        audience: Words = "", "auth-audience", "WORDS", Server;
        /// Who may have issued a token; anybody with the keys, if nobody is named
        issuer: Words = "", "auth-issuer", "WORDS", Server;
        /// Which algorithms may sign tokens; HS256, HS384 and HS512 need token_secret
        algorithms: Words = "RS256,ES256,EdDSA", "auth-algorithms", "WORDS", Server;
        /// How much the clocks of issuers may differ from this one
        leeway: Span = "30 s", "auth-leeway", "TIME", Server;
        /// Whether a token may make its user a moderator
        moderators: bool = "false", "auth-moderators", "", Server;
    }
    /// How often.
    limits: Limits {
        /// Requests of an API key that has no limit of its own, such as 5000/s burst 10000
        key: Limit = "none", "limit-key", "RATE", Server;
        /// Requests of an end user, over all connections
        user: Limit = "50/s burst 100", "limit-user", "RATE", Server;
        /// Follows and unfollows of one user, whoever acts for it
        changes: Limit = "1000/h burst 400", "limit-changes", "RATE", Server;
        /// How many users are remembered for their limits
        remembered: Count = "100000", "limit-remembered", "N", Server;
    }
    /// The rules of the graph.
    graph: GraphRules {
        /// How many one user may follow
        following_limit: u32 = "10000", "following-limit", "N", Server;
    }
    /// The change log.
    log: Log {
        /// Keep changes for so long, and for an hour after a start…
        keep: Span = "7 d", "log-keep", "TIME", Server;
        /// …and no more of them than this; never less than a start needs
        keep_bytes: Bytes = "10 GiB", "log-keep-size", "SIZE", Server;
    }
    /// The system's clock. Times that were given out never go back, so one that is far ahead would stay.
    clock: ClockRules {
        /// A store that is open does not follow a clock that jumps further ahead than this; 0 for any jump
        jump_max: Span = "1 h", "clock-jump-max", "TIME", Server;
        /// A store that is opened does not follow a clock that is further ahead of the store's newest change; 0 for any time
        gap_max: Span = "1000 d", "clock-gap-max", "TIME", Server;
    }
    /// Suggestions: people whom users may know.
    suggest: Suggest {
        /// How long after the begin of one computation for everyone the next begins; 0 for never
        every: Span = "12 h", "suggest-every", "TIME", Server;
        /// How long what was computed is served; after that, and for whom there is nothing, a request walks the graph
        fresh: Span = "24 h", "suggest-fresh", "TIME", Server;
        /// How many of those whom a user follows such a walk looks at, the most recent ones
        per_node: Count = "500", "suggest-per-node", "N", Server;
        /// The same for the computation for everyone; 0 for all of them
        batch_per_node: u32 = "0", "suggest-batch-per-node", "N", Server;
        /// What decides which suggestions are stored, and their order: count, jaccard or adamic-adar
        ranking: Ranking = "count", "suggest-ranking", "RANKING", Server;
        /// How many suggestions are stored for each user
        keep: Count = "100", "suggest-keep", "N", Server;
        /// Threads that compute for everyone [default: one a core]
        threads: Option<Count> = "", "suggest-threads", "N", Server;
    }
    /// Home feeds.
    feed: Feed {
        /// From so many followers on, an author's posts are found by those who read; with fewer, they are delivered
        fan_out_threshold: u32 = "10000", "fan-out-threshold", "N", Server;
        /// How many posts an inbox holds; reading on past them asks the authors
        inbox_entries: Count = "200", "inbox-entries", "N", Server;
        /// Whoever has not read for so long has no inbox; it is made again when they come back
        inbox_idle: Span = "30 d", "inbox-idle", "TIME", Server;
        /// Memory for inboxes; those of whom have not read for longest make room
        inbox_memory: Bytes = "1 GiB", "inbox-memory", "SIZE", Server;
        /// How many recent posts of somebody who is followed go into the follower's inbox
        backfill_posts: u32 = "100", "backfill-posts", "N", Server;
    }
    /// Comment threads.
    comments: Comments {
        /// How many characters a comment may have, and the reason of a moderator
        body_chars_max: Within<1, 100_000> = "10000", "comment-body-chars-max", "N", Server;
        /// How many comments may be above a reply
        depth_max: Within<0, 50> = "50", "comment-depth-max", "N", Server;
        /// How long a repetition under the same key is known for one
        key_keep: Span = "7 d", "comment-key-keep", "TIME", Server;
        /// Texts of purged comments are erased from all files after this time at the latest
        erase_after: Span = "24 h", "comment-erase-after", "TIME", Server;
        /// New comments of one author, whoever acts for it
        author_rate: Limit = "30/m", "limit-author-comments", "RATE", Server;
        /// New comments in one thread, whoever writes them
        parent_rate: Limit = "100/s burst 1000", "limit-parent-comments", "RATE", Server;
    }
    /// Memory.
    cache: Cache {
        /// Memory for blocks of rows
        size: Bytes = "64 MiB", "cache", "SIZE", Server;
    }
    /// What goes to standard error.
    logging: Logging {
        /// error, warn, info, debug or trace; also per module, such as info,kinfolk_server=debug
        level: String = "info", "log-level", "LEVEL", Server;
        /// text or json
        format: LogFormat = "text", "log-format", "FORMAT", Server;
    }
    /// OpenTelemetry.
    tracing: Tracing {
        /// Send traces there by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; none without it
        otlp_endpoint: Option<String> = "", "otlp-endpoint", "URL", Server;
        /// Which part of the requests to trace, from 0 to 1
        sample: Fraction = "0.01", "trace-sample", "FRACTION", Server;
    }
    /// The commands that talk to a server.
    client: Client {
        /// The server to ask, unless a folder is named with --data
        url: String = "http://127.0.0.1:7400", "url", "URL", Everywhere;
        /// A file with the API key or token to show to the server; else the variable KINFOLK_API_KEY
        api_key_file: Option<PathBuf> = "", "api-key-file", "FILE", Everywhere;
        /// The certificates to trust, as PEM, instead of the usual authorities
        ca_file: Option<PathBuf> = "", "ca-file", "FILE", Everywhere;
        /// Print the answer as one JSON document
        json: bool = "false", "json", "", Everywhere;
        /// Show no progress and no hints
        quiet: bool = "false", "quiet", "", Everywhere;
        /// How often to print how far long work has come, where standard error is not a terminal
        progress_every: Span = "3 s", "progress-every", "TIME", Everywhere;
    }
}
