//! redis-rs against running servers. See README.md of the folder above.

use std::collections::{BTreeSet, HashSet};

use clients::{Outcome, Reader, Writer, base, churn, followers, following, ids, report, variable};
use redis::aio::MultiplexedConnection;
use redis::caching::CacheConfig;
use redis::{
    AsyncCommands, AsyncConnectionConfig, Client, FromRedisValue, TlsCertificates, Value, cmd, pipe,
};

fn url(protocol: u8, port: &str, key: &str) -> String {
    let key = if key.is_empty() { String::new() } else { format!(":{key}@") };
    format!("redis://{key}127.0.0.1:{}/?protocol=resp{protocol}", variable(port))
}

async fn connect(protocol: u8, port: &str, key: &str) -> redis::RedisResult<MultiplexedConnection> {
    Client::open(url(protocol, port, key))?.get_multiplexed_async_connection().await
}

async fn ask<T: FromRedisValue>(client: &mut MultiplexedConnection, words: &[&str]) -> T {
    let mut command = cmd(words[0]);
    for word in &words[1..] {
        command.arg(word);
    }
    command.query_async(client).await.unwrap()
}

async fn ping(mut client: MultiplexedConnection) -> Outcome {
    assert_eq!(ask::<String>(&mut client, &["PING"]).await, "PONG");
    None
}

async fn follow(mut client: MultiplexedConnection, user: u64) -> Outcome {
    assert_eq!(client.sadd::<_, _, u64>(following(user), ids(user + 1, user + 3)).await.unwrap(), 2);
    assert_eq!(client.sadd::<_, _, u64>(following(user), user + 1).await.unwrap(), 0);
    assert_eq!(client.srem::<_, _, u64>(following(user), user + 2).await.unwrap(), 1);
    None
}

async fn check(mut client: MultiplexedConnection, user: u64) -> Outcome {
    assert!(client.sismember::<_, _, bool>(following(user), user + 1).await.unwrap());
    assert!(!client.sismember::<_, _, bool>(following(user), user + 2).await.unwrap());
    None
}

async fn bulk(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let found: Vec<bool> = client.smismember(following(user), ids(user + 1, user + 3)).await.unwrap();
    assert_eq!(found, [true, false]);
    None
}

async fn counts(mut client: MultiplexedConnection, user: u64) -> Outcome {
    assert_eq!(client.scard::<_, u64>(following(user)).await.unwrap(), 1);
    assert_eq!(client.scard::<_, u64>(followers(user + 1)).await.unwrap(), 1);
    None
}

async fn members(mut client: MultiplexedConnection, user: u64) -> Outcome {
    assert_eq!(client.smembers::<_, Vec<u64>>(following(user)).await.unwrap(), [user + 1]);
    assert_eq!(client.smembers::<_, HashSet<u64>>(followers(user + 1)).await.unwrap(), HashSet::from([user]));
    None
}

async fn intersect(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let _: u64 = client.sadd(following(user + 9), &[user + 1, user + 3]).await.unwrap();
    let keys = [following(user), following(user + 9)];
    assert_eq!(client.sinter::<_, Vec<u64>>(&keys).await.unwrap(), [user + 1]);
    assert_eq!(ask::<u64>(&mut client, &["SINTERCARD", "2", &keys[0], &keys[1]]).await, 1);
    None
}

async fn scan(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let _: u64 = client.sadd(following(user), ids(user + 1_000, user + 3_000)).await.unwrap();
    let mut found = HashSet::new();
    let mut command = cmd("SSCAN");
    command.arg(following(user)).cursor_arg(0).arg("COUNT").arg(100);
    let mut members = command.iter_async::<String>(&mut client).await.unwrap();
    while let Some(member) = members.next_item().await {
        found.insert(member.unwrap());
    }
    assert_eq!(found.len(), 2_001);
    None
}

async fn pipeline(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let mut commands = pipe();
    for id in user + 1_000..user + 3_000 {
        commands.srem(following(user), id);
    }
    let replies: Vec<u64> = commands.scard(following(user)).query_async(&mut client).await.unwrap();
    assert_eq!(replies, [1; 2_001]);
    None
}

async fn multi(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let mut commands = pipe();
    commands.atomic().sadd(following(user), user + 4).scard(following(user));
    assert_eq!(commands.query_async::<Vec<u64>>(&mut client).await.unwrap(), [1, 2]);
    None
}

async fn own(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let [id, followee, candidate] = [user, user + 5, user + 6].map(|id| id.to_string());
    let client = &mut client;
    let token: String = ask(client, &["FOLLOW", &id, &followee]).await;
    assert_eq!(ask::<String>(client, &["AFTER", &token]).await, "OK");
    assert!(ask::<bool>(client, &["FOLLOWS", &id, &followee]).await);
    let (entries, cursor): (Vec<(String, u64)>, Option<String>) =
        ask(client, &["FOLLOWERS", &followee, "LIMIT", "10"]).await;
    assert_eq!((entries[0].0.as_str(), cursor), (id.as_str(), None));
    assert_eq!(ask::<(u64, u64)>(client, &["COUNTS", &id]).await, (3, 0));
    let _: Value = ask(client, &["FOLLOW", &followee, &candidate]).await;
    let suggestions: Vec<(String, u64, f64, Vec<String>)> =
        ask(client, &["SUGGEST", &id, "LIMIT", "1"]).await;
    assert_eq!(
        (&suggestions[0].0, suggestions[0].1, &suggestions[0].3),
        (&candidate, 1, &vec![followee.clone()])
    );
    let (post, _): (String, String) =
        ask(client, &["POST", &followee, "PAYLOAD", r#"{"text":"hello"}"#]).await;
    let (posts, _): (Vec<(String, String, u64, String)>, Option<String>) =
        ask(client, &["FEED", &id, "LIMIT", "1"]).await;
    assert_eq!((&posts[0].0, posts[0].3.as_str()), (&post, r#"{"text":"hello"}"#));
    None
}

async fn errors(mut client: MultiplexedConnection, user: u64) -> Outcome {
    let error = client.sadd::<_, _, u64>("somewhere", 1).await.unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{error}");
    let error = client.sadd::<_, _, u64>(following(user), user).await.unwrap_err();
    assert_eq!(error.kind(), redis::ErrorKind::Server(redis::ServerErrorKind::ResponseError), "{error}");
    let error = cmd("NONSENSE").query_async::<Value>(&mut client).await.unwrap_err();
    assert!(error.to_string().contains("unknown command"), "{error}");
    ping(client).await
}

async fn key(protocol: u8) -> Outcome {
    let mut client = connect(protocol, "KEY_PORT", &variable("KEY")).await.unwrap();
    assert_eq!(client.sadd::<_, _, u64>(following(base() + u64::from(protocol)), 1).await.unwrap(), 1);
    let Err(error) = connect(protocol, "KEY_PORT", "wrong").await else { panic!("a wrong key is accepted") };
    // In RESP3 the library passes on what HELLO says.
    let is_named = matches!(error.code(), Some("WRONGPASS" | "NOAUTH"));
    assert!(is_named || error.kind() == redis::ErrorKind::AuthenticationFailed, "{error}");
    None
}

async fn tls(protocol: u8) -> Outcome {
    let url = format!("rediss://localhost:{}/?protocol=resp{protocol}", variable("TLS_PORT"));
    let certificates =
        TlsCertificates { client_tls: None, root_cert: Some(std::fs::read(variable("TLS_CA")).unwrap()) };
    let client = Client::build_with_tls(url, certificates).unwrap();
    ping(client.get_multiplexed_async_connection().await.unwrap()).await
}

struct Caching(MultiplexedConnection);

impl Reader for Caching {
    async fn members(&self, key: &str) -> BTreeSet<String> {
        self.0.clone().smembers(key).await.unwrap()
    }

    async fn size(&self, key: &str) -> usize {
        self.0.clone().scard(key).await.unwrap()
    }
}

#[derive(Clone)]
struct Plain(MultiplexedConnection);

impl Writer for Plain {
    async fn write(&self, command: &'static str, key: String, member: u64) {
        let _: u64 = cmd(command).arg(key).arg(member).query_async(&mut self.0.clone()).await.unwrap();
    }
}

/// The library keeps a reply that an invalidation has overtaken (redis 1.8.1, with Redis as well), so that reads and
/// writes do not overlap here.
async fn cache(first: u64) -> Outcome {
    if variable("CACHE").is_empty() {
        return Some("the server has no CLIENT TRACKING");
    }
    let config = AsyncConnectionConfig::new().set_cache_config(CacheConfig::new());
    let client = Client::open(url(3, "PORT", "")).unwrap();
    let reader = Caching(client.get_multiplexed_async_connection_with_config(&config).await.unwrap());
    churn(&reader, &Plain(connect(2, "PORT", "").await.unwrap()), first, false).await;
    let statistics = reader.0.get_cache_statistics().unwrap();
    assert!(statistics.hit > 100, "{statistics:?}");
    None
}

#[tokio::main]
async fn main() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    println!("version {}", std::env::args().nth(1).unwrap_or_default());
    if variable("ONLY_CACHE").is_empty() {
        let defaults = async {
            let client = Client::open(format!("redis://127.0.0.1:{}", variable("PORT"))).unwrap();
            ping(client.get_multiplexed_async_connection().await.unwrap()).await
        };
        report("defaults", defaults).await;
        for protocol in [2, 3] {
            let user = base() + 10_000 * u64::from(protocol);
            let client = connect(protocol, "PORT", "").await.unwrap();
            report(&format!("resp{protocol}"), ping(client.clone())).await;
            report("follow", follow(client.clone(), user)).await;
            report("check", check(client.clone(), user)).await;
            report("bulk", bulk(client.clone(), user)).await;
            report("counts", counts(client.clone(), user)).await;
            report("members", members(client.clone(), user)).await;
            report("intersect", intersect(client.clone(), user)).await;
            report("scan", scan(client.clone(), user)).await;
            report("pipeline", pipeline(client.clone(), user)).await;
            report("multi", multi(client.clone(), user)).await;
            report("own", own(client.clone(), user)).await;
            report("errors", errors(client.clone(), user)).await;
            report("key", key(protocol)).await;
            report("tls", tls(protocol)).await;
        }
    }
    report("cache", cache(base() + 50_000)).await;
}
