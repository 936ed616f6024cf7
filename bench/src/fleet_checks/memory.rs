//! The memory of Redis for each edge that is cached, with sets of integers as arrays and as Redis stores them by default.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use super::deployment::Deployment;
use super::graph::Graph;
use crate::client::Client;
use crate::measurement::Recorder;

/// Redis stores larger sets of integers as hash tables by default.
const INTSET_DEFAULT: usize = 512;
/// The setting that is recommended: no set that is cached is larger.
const INTSET_LARGE: usize = 10_000;

/// Memory has settled when it was the same so often, but for a little; it is read so often, and not longer than that.
const SAME_MIN: u32 = 5;
const NOISE_BYTES: i64 = 2_048;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const SETTLED_MAX: Duration = Duration::from_secs(10);

/// Measures everybody's sets and only the large ones, with both settings. The cache is empty afterwards. Returns notes.
pub fn measure(
    deployment: &Deployment,
    graph: &Graph,
    runtime: &Runtime,
    recorder: &mut Recorder,
) -> Result<Vec<String>> {
    let large: Vec<u64> = graph
        .followers
        .iter()
        .copied()
        .filter(|&user| graph.following(user).len() > INTSET_DEFAULT)
        .collect();
    let edges_of =
        |followers: &[u64]| followers.iter().map(|&user| graph.following(user).len()).sum::<usize>();
    let mut notes = vec![format!(
        "memory of Redis: {} sets with {} edges, of which {} sets with {} edges are larger than {INTSET_DEFAULT}; \
         used_memory of the three masters without the buffers of replication and clients; marks and watermarks included",
        graph.followers.len(),
        graph.edges.len(),
        large.len(),
        edges_of(&large)
    )];
    // Redis allocates some of its own memory once, when it is first used.
    deployment.fill_cache(&graph.followers, runtime)?;
    for entries in [INTSET_DEFAULT, INTSET_LARGE] {
        for master in &mut deployment.masters()? {
            master.command(&format!("CONFIG SET set-max-intset-entries {entries}"))?;
        }
        for (name, followers) in [("all", &graph.followers), ("large", &large)] {
            if followers.is_empty() {
                continue;
            }
            deployment.flush_cache()?;
            let before = settled_bytes(deployment)?;
            deployment.fill_cache(followers, runtime)?;
            let bytes = settled_bytes(deployment)? - before;
            recorder.record(&format!("memory_{name}_{entries}"), bytes as f64 / edges_of(followers) as f64);
        }
        let largest = graph.followers.iter().copied().max_by_key(|&user| graph.following(user).len());
        let largest = largest.context("somebody follows")?;
        deployment.fill_cache(&[largest], runtime)?;
        notes.push(format!(
            "set-max-intset-entries {entries}: OBJECT ENCODING of the largest set, {} members, is {}",
            graph.following(largest).len(),
            encoding(deployment, largest)?
        ));
    }
    deployment.flush_cache()?;
    Ok(notes)
}

/// What all masters use for data, once connections that were closed are gone and tables are no longer resized.
fn settled_bytes(deployment: &Deployment) -> Result<i64> {
    let (began, mut last, mut same) = (Instant::now(), 0, 0);
    while same < SAME_MIN && began.elapsed() < SETTLED_MAX {
        sleep(LOOK_EVERY);
        let bytes = used_bytes(deployment)?;
        same = if (bytes - last).abs() <= NOISE_BYTES { same + 1 } else { 0 };
        last = bytes;
    }
    Ok(last)
}

/// What all masters use for data now.
fn used_bytes(deployment: &Deployment) -> Result<i64> {
    let mut bytes = 0;
    for master in &mut deployment.masters()? {
        let printed = String::from_utf8_lossy(master.command("INFO memory")?).into_owned();
        let field = |name: &str| -> Result<i64> {
            let value = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            Ok(value.with_context(|| format!("INFO memory has no {name}"))?.trim().parse()?)
        };
        bytes +=
            field("used_memory")? - field("mem_total_replication_buffers")? - field("mem_clients_normal")?;
    }
    Ok(bytes)
}

/// How Redis stores the set of a follower.
fn encoding(deployment: &Deployment, follower: u64) -> Result<String> {
    for master in &mut deployment.masters()? {
        if let Some(key) = find_key(master, &format!("*:set:1:{follower}"))? {
            return text(master.command(&format!("OBJECT ENCODING {key}"))?).context("a key has an encoding");
        }
    }
    anyhow::bail!("the set of {follower} is not cached")
}

/// A key of a node that fits a pattern.
fn find_key(node: &mut Client, pattern: &str) -> Result<Option<String>> {
    let reply = String::from_utf8_lossy(node.command(&format!("KEYS {pattern}"))?).into_owned();
    let mut lines = reply.lines();
    let count = lines.next().unwrap_or_default();
    ensure!(count.starts_with('*'), "KEYS replied {reply:?}");
    Ok(lines.nth(1).map(str::to_owned))
}

/// The text of a bulk string, if it is not null.
pub fn text(reply: &[u8]) -> Option<String> {
    let reply = std::str::from_utf8(reply).ok()?;
    let (length, text) = reply.split_once("\r\n")?;
    (length != "$-1").then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_strings_are_read() {
        assert_eq!(text(b"$6\r\nintset\r\n"), Some("intset".to_owned()));
        assert_eq!(text(b"$-1\r\n"), None);
    }
}
