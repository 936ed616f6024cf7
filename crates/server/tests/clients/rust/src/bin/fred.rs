//! fred against running servers. See README.md of the folder above.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clients::{Outcome, Reader, Writer, base, churn, followers, following, ids, report, variable};
use fred::interfaces::TrackingInterface;
use fred::prelude::*;
use fred::types::config::TlsConnector;
use fred::types::scan::Scanner;
use fred::types::{ClusterHash, CustomCommand, FromValue, RespVersion};
use futures::TryStreamExt;

async fn connect(
    protocol: u8,
    port: &str,
    key: &str,
    connector: Option<TlsConnector>,
) -> Result<Client, Error> {
    let mut config = Config::from_url(&format!("redis://localhost:{}", variable(port)))?;
    config.version = if protocol == 2 { RespVersion::RESP2 } else { RespVersion::RESP3 };
    config.password = (!key.is_empty()).then(|| key.to_owned());
    config.tls = connector.map(Into::into);
    let client = Builder::from_config(config).build()?;
    client.init().await?;
    Ok(client)
}

async fn ask<T: FromValue>(client: &Client, words: &[&str]) -> Result<T, Error> {
    let command = CustomCommand::new(words[0], ClusterHash::FirstKey, false);
    client.custom(command, words[1..].iter().map(ToString::to_string).collect()).await
}

async fn ping(client: Client) -> Outcome {
    assert_eq!(client.ping::<String>(None).await.unwrap(), "PONG");
    None
}

async fn follow(client: Client, user: u64) -> Outcome {
    assert_eq!(client.sadd::<u64, _, _>(following(user), ids(user + 1, user + 3)).await.unwrap(), 2);
    assert_eq!(client.sadd::<u64, _, _>(following(user), ids(user + 1, user + 2)).await.unwrap(), 0);
    assert_eq!(client.srem::<u64, _, _>(following(user), ids(user + 2, user + 3)).await.unwrap(), 1);
    None
}

async fn check(client: Client, user: u64) -> Outcome {
    assert!(client.sismember::<bool, _, _>(following(user), (user + 1).to_string()).await.unwrap());
    assert!(!client.sismember::<bool, _, _>(following(user), (user + 2).to_string()).await.unwrap());
    None
}

async fn bulk(client: Client, user: u64) -> Outcome {
    let found: Vec<bool> = client.smismember(following(user), ids(user + 1, user + 3)).await.unwrap();
    assert_eq!(found, [true, false]);
    None
}

async fn counts(client: Client, user: u64) -> Outcome {
    assert_eq!(client.scard::<u64, _>(following(user)).await.unwrap(), 1);
    assert_eq!(client.scard::<u64, _>(followers(user + 1)).await.unwrap(), 1);
    None
}

async fn members(client: Client, user: u64) -> Outcome {
    assert_eq!(client.smembers::<Vec<u64>, _>(following(user)).await.unwrap(), [user + 1]);
    assert_eq!(client.smembers::<Vec<u64>, _>(followers(user + 1)).await.unwrap(), [user]);
    None
}

async fn intersect(client: Client, user: u64) -> Outcome {
    let _: u64 =
        client.sadd(following(user + 9), vec![(user + 1).to_string(), (user + 3).to_string()]).await.unwrap();
    let keys = vec![following(user), following(user + 9)];
    assert_eq!(client.sinter::<Vec<u64>, _>(keys.clone()).await.unwrap(), [user + 1]);
    assert_eq!(ask::<u64>(&client, &["SINTERCARD", "2", &keys[0], &keys[1]]).await.unwrap(), 1);
    None
}

async fn scan(client: Client, user: u64) -> Outcome {
    let _: u64 = client.sadd(following(user), ids(user + 1_000, user + 3_000)).await.unwrap();
    let mut found = HashSet::new();
    let mut pages = Box::pin(client.sscan(following(user), "*", Some(100)));
    while let Some(mut page) = pages.try_next().await.unwrap() {
        found.extend(
            page.take_results().unwrap_or_default().into_iter().filter_map(|member| member.as_string()),
        );
        page.next();
    }
    assert_eq!(found.len(), 2_001);
    None
}

async fn pipeline(client: Client, user: u64) -> Outcome {
    let commands = client.pipeline();
    for id in ids(user + 1_000, user + 3_000) {
        let () = commands.srem(following(user), id).await.unwrap();
    }
    let () = commands.scard(following(user)).await.unwrap();
    assert_eq!(commands.all::<Vec<u64>>().await.unwrap(), [1; 2_001]);
    None
}

async fn multi(client: Client, user: u64) -> Outcome {
    let commands = client.multi();
    let () = commands.sadd(following(user), (user + 4).to_string()).await.unwrap();
    let () = commands.scard(following(user)).await.unwrap();
    assert_eq!(commands.exec::<Vec<u64>>(true).await.unwrap(), [1, 2]);
    None
}

async fn own(client: Client, user: u64) -> Outcome {
    let [id, followee, candidate] = [user, user + 5, user + 6].map(|id| id.to_string());
    let token: String = ask(&client, &["FOLLOW", &id, &followee]).await.unwrap();
    assert_eq!(ask::<String>(&client, &["AFTER", &token]).await.unwrap(), "OK");
    assert!(ask::<bool>(&client, &["FOLLOWS", &id, &followee]).await.unwrap());
    let page: Vec<Value> = ask(&client, &["FOLLOWERS", &followee, "LIMIT", "10"]).await.unwrap();
    let entries: Vec<Value> = page[0].clone().convert().unwrap();
    assert_eq!(entries[0].clone().convert::<Vec<String>>().unwrap()[0], id);
    assert!(page[1].is_null());
    assert_eq!(ask::<Vec<u64>>(&client, &["COUNTS", &id]).await.unwrap(), [3, 0]);
    let _: Value = ask(&client, &["FOLLOW", &followee, &candidate]).await.unwrap();
    let suggestions: Vec<Value> = ask(&client, &["SUGGEST", &id, "LIMIT", "1"]).await.unwrap();
    let suggestion: Vec<Value> = suggestions[0].clone().convert().unwrap();
    assert_eq!((suggestion[0].as_string(), suggestion[1].as_u64()), (Some(candidate), Some(1)));
    assert!(suggestion[2].as_f64().is_some());
    assert_eq!(suggestion[3].clone().convert::<Vec<String>>().unwrap(), [followee.clone()]);
    let post: Vec<String> =
        ask(&client, &["POST", &followee, "PAYLOAD", r#"{"text":"hello"}"#]).await.unwrap();
    let feed: Vec<Value> = ask(&client, &["FEED", &id, "LIMIT", "1"]).await.unwrap();
    let posts: Vec<Value> = feed[0].clone().convert().unwrap();
    let newest: Vec<String> = posts[0].clone().convert().unwrap();
    assert_eq!((&newest[0], newest[3].as_str()), (&post[0], r#"{"text":"hello"}"#));
    None
}

async fn errors(client: Client, user: u64) -> Outcome {
    let error = client.sadd::<u64, _, _>("somewhere", "1").await.unwrap_err();
    assert!(error.details().starts_with("WRONGTYPE"), "{error}");
    let error = client.sadd::<u64, _, _>(following(user), user.to_string()).await.unwrap_err();
    assert!(error.details().starts_with("ERR"), "{error}");
    let error = ask::<Value>(&client, &["NONSENSE"]).await.unwrap_err();
    assert!(error.details().contains("unknown command"), "{error}");
    ping(client).await
}

async fn key(protocol: u8) -> Outcome {
    let client = connect(protocol, "KEY_PORT", &variable("KEY"), None).await.unwrap();
    let followed: u64 = client.sadd(following(base() + u64::from(protocol)), "1").await.unwrap();
    assert_eq!(followed, 1);
    let Err(error) = connect(protocol, "KEY_PORT", "wrong", None).await else {
        panic!("a wrong key is accepted")
    };
    assert_eq!(*error.kind(), ErrorKind::Auth, "{error}");
    None
}

async fn tls(protocol: u8) -> Outcome {
    let mut roots = rustls::RootCertStore::empty();
    use rustls::pki_types::pem::PemObject;
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(variable("TLS_CA")).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    ping(connect(protocol, "TLS_PORT", "", Some(config.into())).await.unwrap()).await
}

/// The library reports invalidations and leaves the cache to its user. A set that is invalidated while it is read is not
/// kept.
struct Caching {
    client: Client,
    local: Arc<Mutex<Local>>,
    hits: AtomicUsize,
}

#[derive(Default)]
struct Local {
    sets: HashMap<String, BTreeSet<String>>,
    invalidations: HashMap<String, u64>,
}

impl Reader for Caching {
    async fn members(&self, key: &str) -> BTreeSet<String> {
        let before = {
            let local = self.local.lock().unwrap();
            if let Some(members) = local.sets.get(key) {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return members.clone();
            }
            local.invalidations.get(key).copied()
        };
        let members: BTreeSet<String> =
            self.client.smembers::<Vec<String>, _>(key).await.unwrap().into_iter().collect();
        let mut local = self.local.lock().unwrap();
        if local.invalidations.get(key).copied() == before {
            local.sets.insert(key.to_owned(), members.clone());
        }
        members
    }

    async fn size(&self, key: &str) -> usize {
        self.members(key).await.len()
    }
}

#[derive(Clone)]
struct Plain(Client);

impl Writer for Plain {
    async fn write(&self, command: &'static str, key: String, member: u64) {
        let _: u64 = ask(&self.0, &[command, &key, &member.to_string()]).await.unwrap();
    }
}

async fn cache(first: u64) -> Outcome {
    if variable("CACHE").is_empty() {
        return Some("the server has no CLIENT TRACKING");
    }
    let client = connect(3, "PORT", "", None).await.unwrap();
    let reader = Caching { client, local: Arc::default(), hits: AtomicUsize::new(0) };
    let local = reader.local.clone();
    reader.client.on_invalidation(move |invalidation| {
        let mut local = local.lock().unwrap();
        for key in invalidation.keys {
            let key = key.as_str_lossy().into_owned();
            local.sets.remove(&key);
            *local.invalidations.entry(key).or_default() += 1;
        }
        Ok(())
    });
    reader.client.start_tracking(None, false, false, false, false).await.unwrap();
    churn(&reader, &Plain(connect(2, "PORT", "", None).await.unwrap()), first, true).await;
    let hits = reader.hits.load(Ordering::Relaxed);
    assert!(hits > 100, "{hits} hits");
    None
}

#[tokio::main]
async fn main() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    println!("version {}", std::env::args().nth(1).unwrap_or_default());
    if variable("ONLY_CACHE").is_empty() {
        let defaults = async {
            let config = Config::from_url(&format!("redis://localhost:{}", variable("PORT"))).unwrap();
            let client = Builder::from_config(config).build().unwrap();
            client.init().await.unwrap();
            ping(client).await
        };
        report("defaults", defaults).await;
        for protocol in [2, 3] {
            let user = base() + 10_000 * u64::from(protocol);
            let client = connect(protocol, "PORT", "", None).await.unwrap();
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
