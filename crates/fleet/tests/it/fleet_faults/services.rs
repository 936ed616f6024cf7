//! What the fleet does for its users, and for how long it did not: the longest time between two times that it did.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::{Sequence, Shard};
use kinfolk_fleet::Fleet;

use super::Load;

/// Something that the fleet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A write to a host is acknowledged.
    Write(usize),
    /// A check of a host's users, without a token.
    Check(usize),
    /// Followers of a host's users, or their number, without a token.
    Followers(usize),
    /// Every slot of Redis can be written.
    Redis,
    /// The topic has all changes that the logs had a moment ago.
    Topic,
}

pub const SERVICES: [Service; 8] = [
    Service::Write(0),
    Service::Write(1),
    Service::Check(0),
    Service::Check(1),
    Service::Followers(0),
    Service::Followers(1),
    Service::Redis,
    Service::Topic,
];

/// When each was done last, and the longest time between.
pub struct Services(Mutex<[(Instant, Duration); SERVICES.len()]>);

impl Services {
    pub fn new() -> Self {
        Self(Mutex::new([(Instant::now(), Duration::ZERO); SERVICES.len()]))
    }

    pub fn served(&self, service: Service) {
        let index = SERVICES.iter().position(|known| *known == service).unwrap();
        let mut all = self.0.lock().unwrap();
        let (last, longest) = &mut all[index];
        *longest = last.elapsed().max(*longest);
        *last = Instant::now();
    }

    /// From now on, interruptions are counted afresh.
    pub fn begin(&self) {
        self.0.lock().unwrap().iter_mut().for_each(|(_, longest)| *longest = Duration::ZERO);
    }

    /// Those that were not done since a moment.
    pub fn missing_since(&self, moment: Instant) -> Vec<Service> {
        let all = self.0.lock().unwrap();
        let missing = SERVICES.iter().zip(all.iter()).filter(|(_, (last, _))| *last <= moment);
        missing.map(|(service, _)| *service).collect()
    }

    /// The longest interruption of each since [`Services::begin`].
    pub fn interruptions(&self) -> Vec<(Service, Duration)> {
        let all = self.0.lock().unwrap();
        SERVICES.iter().zip(all.iter()).map(|(service, (_, longest))| (*service, *longest)).collect()
    }
}

/// Keys in slots of different masters.
const KEYS: [&str; 3] = ["kinfolk-probe-186", "kinfolk-probe-25", "kinfolk-probe-365"];

/// Whether a node takes a write of a key. A node of another slot, and one that is stopped or killed, does not.
fn takes_write(node: &str, key: &str) -> std::io::Result<bool> {
    let patience = Duration::from_millis(200);
    let mut stream = TcpStream::connect_timeout(&node.parse().unwrap(), patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("SET {key} 1 EX 60\r\n").as_bytes())?;
    let mut reply = [0; 3];
    stream.read_exact(&mut reply)?;
    Ok(reply == *b"+OK")
}

/// Watches Redis until the end.
pub fn watch_redis(load: &Load, nodes: &str) {
    let nodes: Vec<&str> = nodes.split(',').collect();
    // The node that has taken it last is asked first.
    let mut last = [0; KEYS.len()];
    while !load.ends() {
        let served = KEYS.iter().zip(&mut last).all(|(key, last)| {
            let taken = (0..nodes.len())
                .map(|step| (*last + step) % nodes.len())
                .find(|&node| takes_write(nodes[node], key).unwrap_or(false));
            *last = taken.unwrap_or(*last);
            taken.is_some()
        });
        if served {
            load.services.served(Service::Redis);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Watches the topic until the end.
pub fn watch_topic(load: &Load, store: &Fleet) {
    let mut awaited: Vec<(Shard, Sequence)> = Vec::new();
    while !load.ends() {
        if let Ok(status) = block_on(store.status()) {
            let relayed = |shard: Shard| status.shards.iter().find(|known| known.shard == shard)?.relayed;
            awaited.retain(|&(shard, newest)| relayed(shard).unwrap_or_default() < newest);
            if awaited.is_empty() {
                let newest: Option<Vec<_>> =
                    status.shards.iter().map(|known| Some((known.shard, known.newest?))).collect();
                if let Some(newest) = newest {
                    load.services.served(Service::Topic);
                    awaited = newest;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
