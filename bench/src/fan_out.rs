//! What `feed` measures of inboxes: how fast posts reach them, and the memory that they take.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, thread};

use anyhow::{Context, Result, bail};
use clap::Args;
use kinfolk_embedded::Embedded;
use serde::{Deserialize, Serialize};

use crate::cast::Cast;
use crate::posting::{Made, register_all, wake};
use crate::process::{memory_bytes, run as run_program};
use crate::random::Random;
use crate::server::cpu_seconds;
use crate::survey::Users;

/// So many posts wait to be delivered at any time, so that deliveries never wait for posts.
/// At most one entry in so many may come too late for an inbox.
const LATE_SHARE_MAX: u64 = 10_000;
const QUEUED: u64 = 256;
const POLL_EVERY: Duration = Duration::from_millis(2);

/// Posts that were delivered, and what it took.
#[derive(Debug)]
pub struct Delivered {
    /// In the order in which they were registered.
    pub posts: Vec<Made>,
    pub entries: u64,
    pub elapsed: Duration,
    pub cpu_seconds: f64,
}

/// The followers of each author, all with inboxes.
pub type Followers = BTreeMap<u64, Vec<u64>>;

/// Registers posts of speakers for a time and waits until the last is delivered.
pub fn deliver(store: &Embedded, cast: Cast, followers: &Followers, time: Duration) -> Result<Delivered> {
    let speakers: Vec<u64> = cast.speakers().collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
    let mut random = Random::new(now);
    let mut posts: Vec<Made> = Vec::new();
    let (before, cpu) = (store.stats().fan_out_entries, cpu_seconds(process::id()));
    let started = Instant::now();
    while started.elapsed() < time {
        let missing = QUEUED.saturating_sub(store.stats().fan_out_lag_events);
        if missing == 0 {
            thread::sleep(POLL_EVERY);
            continue;
        }
        let millis = now + started.elapsed().as_millis() as u64;
        let number = posts.len() as u64;
        let some: Vec<Made> =
            (0..missing).map(|more| Made::at(random.pick(&speakers), millis, number + more)).collect();
        posts.extend(&some);
        register_all(store, some.into_iter().map(Made::registration))?;
    }
    quiet(store);
    let elapsed = started.elapsed();
    let cpu_seconds = cpu_seconds(process::id()) - cpu;
    let entries = store.stats().fan_out_entries - before;
    let expected: usize = posts.iter().filter_map(|post| followers.get(&post.author)).map(Vec::len).sum();
    // More posts wait than an inbox holds, and authors take turns: the oldest of those may come after so many newer ones that an
    // inbox has no place for them any more.
    let late =
        (expected as u64).checked_sub(entries).filter(|&late| late <= expected as u64 / LATE_SHARE_MAX);
    if late.is_none() {
        bail!("{entries} entries reached inboxes, not {expected}");
    }
    Ok(Delivered { posts, entries, elapsed, cpu_seconds })
}

/// Waits until everything is delivered.
pub fn quiet(store: &Embedded) {
    while store.stats().fan_out_lag_events > 0 {
        thread::sleep(POLL_EVERY);
    }
}

/// The memory of inboxes that are full.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct InboxMemory {
    /// How many were made between two looks at the memory of the process.
    pub inboxes: u64,
    /// By how much it grew, for each of them.
    pub bytes: f64,
    /// What the store itself counts.
    pub counted_bytes: f64,
}

/// Opens a store in which nobody has read, and lets those read who get a full inbox. The first half of them warms up
/// everything else that takes memory; the second adds inboxes and nothing else.
pub fn inbox_memory(folder: &Path, cast: Cast) -> Result<InboxMemory> {
    let store = Embedded::open(folder, cast.settings())?;
    let fans = cast.fans_with_full_inbox();
    let (warm_up, measured) = fans.split_at(fans.len() / 2);
    let resident = || memory_bytes(process::id(), "VmRSS");
    wake(&store, warm_up.to_vec())?;
    let (before, counted) = (resident(), store.stats().inbox_bytes);
    wake(&store, measured.to_vec())?;
    let each = |bytes: u64| bytes as f64 / measured.len() as f64;
    let memory = InboxMemory {
        inboxes: measured.len() as u64,
        bytes: each(resident().saturating_sub(before)),
        counted_bytes: each(store.stats().inbox_bytes.saturating_sub(counted)),
    };
    store.close()?;
    Ok(memory)
}

/// The same in a process of its own, where no memory lies about that was used before.
pub fn inbox_memory_in_child(folder: &Path, cast: Cast) -> Result<InboxMemory> {
    let users = [cast.users.first, cast.users.last].map(|user| user.to_string());
    let mut child = Command::new(env::current_exe()?);
    let printed = run_program(child.arg("feed-child").arg(folder).args(users))?;
    serde_json::from_str(&printed).with_context(|| format!("the started process printed {printed:?}"))
}

/// The process that is started.
#[derive(Clone, Debug, Args)]
pub struct FeedChild {
    store: PathBuf,
    user_first: u64,
    user_last: u64,
}

impl FeedChild {
    pub fn run(&self) -> Result<()> {
        let cast = Cast::of(Users { first: self.user_first, last: self.user_last });
        println!("{}", serde_json::to_string(&inbox_memory(&self.store, cast)?)?);
        Ok(())
    }
}
