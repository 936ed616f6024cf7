//! Loads a sorted stream of edges into the rows and the index, beside what is there already.
//!
//! One thread merges and decides, others load each tree and the index from what it accepted. Decisions depend only on
//! the stream and on the index as it was, so that a load that a crash cut off can be done again.

mod run;
mod sorter;

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::ScopedJoinHandle;

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, Result, Sequence, Timestamp};

use super::{Load, Rows, Tree};
use crate::Progress;
use crate::disk::files;
use crate::disk::id_encoding::IdEncoding;
use crate::edges::index::Index;

pub(crate) use run::{Block, ListRecord, PairRecord, Record};
pub(crate) use sorter::{Merge, Sorter};

/// Edges are handed on in chunks of about this many: small enough that the allocator reuses their memory.
const CHUNK_EDGES: usize = 2 << 10;
/// How many chunks may wait for each consumer.
const CHUNKS_WAITING: usize = 64;
/// Progress is reported about once for so many edges.
const REPORT_EDGES: u64 = 64 << 10;

/// Where a load goes.
pub(crate) struct Target<'a> {
    pub rows: &'a Rows,
    pub index: &'a Index,
    /// A folder for sorting.
    pub scratch: &'a Path,
    /// How much memory sorting may use.
    pub sort_memory: usize,
    /// The position that the load brings each tree to.
    pub position: Sequence,
    pub kind: EdgeKind,
    /// Which trees, in the order of [`Tree::ALL`], still need it.
    pub trees: [bool; 3],
    /// Whether the index still needs it.
    pub indexed: bool,
    /// How many edges come, duplicates included, where that is known.
    pub total: Option<u64>,
}

/// What a load did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loaded {
    pub added: u64,
    pub duplicates: u64,
    pub over_limit: u64,
}

/// Accepted edges: for each follower in ascending order how many there are, then all of them by followee.
struct Chunk<K> {
    followers: Vec<(K, usize)>,
    edges: Vec<(K, u64)>,
}

impl<K: IdEncoding> Chunk<K> {
    fn new() -> Self {
        Self { followers: Vec::new(), edges: Vec::with_capacity(CHUNK_EDGES + CHUNK_EDGES / 2) }
    }

    fn groups(&self) -> impl Iterator<Item = (K, &[(K, u64)])> {
        let mut rest = &self.edges[..];
        self.followers.iter().map(move |&(follower, count)| {
            let (group, following) = rest.split_at(count);
            rest = following;
            (follower, group)
        })
    }
}

fn edge<K: IdEncoding>(follower: K, followee: K) -> Edge {
    Edge { follower: follower.to_id(), followee: followee.to_id() }
}

/// Loads edges that come sorted by follower and followee. The earliest of several of one pair counts, or one that
/// the graph has already; past the limit a follower's earliest are kept.
pub(crate) fn load<K: IdEncoding>(
    target: &Target<'_>,
    sorted: impl Iterator<Item = Result<PairRecord<K>>>,
    limit: Option<u32>,
    progress: &dyn Fn(Progress),
) -> Result<Loaded> {
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut consumer = || {
            let (sender, receiver) = sync_channel::<Arc<Chunk<K>>>(CHUNKS_WAITING);
            senders.push(sender);
            receiver
        };
        let [pairs, following, followers] = target.trees;
        let mut loaders: Vec<ScopedJoinHandle<'_, Result<()>>> = Vec::new();
        if pairs {
            let chunks = consumer();
            loaders.push(scope.spawn(move || load_pairs(target, chunks)));
        }
        if following {
            let chunks = consumer();
            loaders.push(scope.spawn(move || load_following(target, chunks)));
        }
        if target.indexed {
            let chunks = consumer();
            loaders.push(scope.spawn(move || load_index(target, chunks)));
        }
        let follower_lists = followers.then(|| {
            let chunks = consumer();
            scope.spawn(move || sort_followers(target, chunks))
        });
        let report = |done| progress(Progress { stage: "loading", done, total: target.total });
        let decided = decide((target.index, target.kind), sorted, limit, &senders, &report);
        drop(senders);
        if let Some(sorting) = follower_lists {
            let lists = join(sorting)?;
            let loaded = decided.as_ref().map_or(0, |loaded| loaded.added);
            // A consumer that failed is the reason for a decision that failed, and is reported first.
            if decided.is_ok() {
                load_followers(target, lists, loaded, progress)?;
            }
        }
        for loader in loaders {
            join(loader)?;
        }
        decided
    })
}

fn join<T>(handle: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|_| Err(Error::storage("a loading thread failed")))
}

/// How many edges [`load`] would add, without loading any.
pub(crate) fn count<K: IdEncoding>(
    graph: (&Index, EdgeKind),
    sorted: impl Iterator<Item = Result<PairRecord<K>>>,
    limit: Option<u32>,
    report: &dyn Fn(u64),
) -> Result<u64> {
    Ok(decide(graph, sorted, limit, &[], report)?.added)
}

/// Merges groups, drops what is not to be added, and hands the rest to the consumers. Reports how many edges it has seen.
fn decide<K: IdEncoding>(
    (index, kind): (&Index, EdgeKind),
    sorted: impl Iterator<Item = Result<PairRecord<K>>>,
    limit: Option<u32>,
    senders: &[SyncSender<Arc<Chunk<K>>>],
    report: &dyn Fn(u64),
) -> Result<Loaded> {
    let empty = index.of(kind).user_count() == 0;
    let (mut loaded, mut reported) = (Loaded::default(), 0);
    let mut chunk = Chunk::new();
    let mut group: Vec<(K, u64)> = Vec::new();
    let mut sorted = sorted.peekable();
    while let Some(record) = sorted.next() {
        let PairRecord { follower, followee, since } = record?;
        match group.last_mut() {
            Some((last, earliest)) if *last == followee => {
                *earliest = since.min(*earliest);
                loaded.duplicates += 1;
            }
            _ => group.push((followee, since)),
        }
        let ends = !matches!(sorted.peek(), Some(Ok(next)) if next.follower == follower);
        if !ends {
            continue;
        }
        if !empty {
            let known = index.of(kind).followees(follower.to_id());
            let offered = group.len();
            group.retain(|&(followee, _)| known.binary_search(&followee.to_id()).is_err());
            loaded.duplicates += (offered - group.len()) as u64;
            loaded.over_limit += cut(&mut group, limit, known.len());
        } else {
            loaded.over_limit += cut(&mut group, limit, 0);
        }
        loaded.added += group.len() as u64;
        let seen = loaded.added + loaded.duplicates + loaded.over_limit;
        if seen / REPORT_EDGES != reported / REPORT_EDGES {
            report(seen);
            reported = seen;
        }
        if !group.is_empty() {
            chunk.followers.push((follower, group.len()));
            chunk.edges.append(&mut group);
        }
        if chunk.edges.len() >= CHUNK_EDGES {
            hand_on(&mut chunk, senders)?;
        }
    }
    hand_on(&mut chunk, senders)?;
    Ok(loaded)
}

/// Keeps as many edges as the limit leaves room for: the earliest, and of equal ones the lowest ids.
fn cut<K: IdEncoding>(group: &mut Vec<(K, u64)>, limit: Option<u32>, known: usize) -> u64 {
    let room = limit.map_or(usize::MAX, |limit| (limit as usize).saturating_sub(known));
    let over = group.len().saturating_sub(room);
    if over > 0 {
        group.sort_unstable_by_key(|&(followee, since)| (since, followee));
        group.truncate(room);
        group.sort_unstable();
    }
    over as u64
}

fn hand_on<K: IdEncoding>(chunk: &mut Chunk<K>, senders: &[SyncSender<Arc<Chunk<K>>>]) -> Result<()> {
    if senders.is_empty() {
        chunk.followers.clear();
        chunk.edges.clear();
        return Ok(());
    }
    let whole = Arc::new(std::mem::replace(chunk, Chunk::new()));
    for sender in senders {
        let stopped = |_| Error::storage("loading stopped");
        sender.send(Arc::clone(&whole)).map_err(stopped)?;
    }
    Ok(())
}

fn load_pairs<K: IdEncoding>(target: &Target<'_>, chunks: Receiver<Arc<Chunk<K>>>) -> Result<()> {
    let mut load = target.rows.load(Tree::Pairs, target.kind, target.position)?;
    for chunk in chunks {
        for (follower, group) in chunk.groups() {
            for &(followee, since) in group {
                load.push(edge(follower, followee), Timestamp::from_millis(since))?;
            }
        }
    }
    load.finish()
}

fn load_following<K: IdEncoding>(target: &Target<'_>, chunks: Receiver<Arc<Chunk<K>>>) -> Result<()> {
    let mut load = target.rows.load(Tree::Following, target.kind, target.position)?;
    let mut newest_first = Vec::new();
    for chunk in chunks {
        for (follower, group) in chunk.groups() {
            newest_first.clear();
            newest_first.extend_from_slice(group);
            newest_first.sort_unstable_by_key(|&(followee, since)| Reverse((since, followee)));
            for &(followee, since) in &newest_first {
                load.push(edge(follower, followee), Timestamp::from_millis(since))?;
            }
        }
    }
    load.finish()
}

fn load_index<K: IdEncoding>(target: &Target<'_>, chunks: Receiver<Arc<Chunk<K>>>) -> Result<()> {
    let mut followees = Vec::new();
    for chunk in chunks {
        for (follower, group) in chunk.groups() {
            followees.clear();
            followees.extend(group.iter().map(|&(followee, _)| followee.to_id()));
            target.index.of(target.kind).extend(follower.to_id(), &followees);
        }
    }
    Ok(())
}

fn sort_followers<K: IdEncoding>(
    target: &Target<'_>,
    chunks: Receiver<Arc<Chunk<K>>>,
) -> Result<[Sorter<ListRecord<K>>; 2]> {
    let half = |name: &str| -> Result<Sorter<ListRecord<K>>> {
        let folder = target.scratch.join(name);
        files::create_folder(&folder)?;
        Ok(Sorter::new(&folder, target.sort_memory / 2))
    };
    let mut halves = [half("low")?, half("high")?];
    let mut border = None;
    for chunk in chunks {
        // The first edges show about where the middle is. A bad guess costs time, nothing else.
        let border = *border.get_or_insert_with(|| median(&chunk.edges));
        for (follower, group) in chunk.groups() {
            for &(followee, since) in group {
                halves[usize::from(followee >= border)].push(ListRecord { followee, since, follower })?;
            }
        }
    }
    Ok(halves)
}

fn median<K: IdEncoding>(edges: &[(K, u64)]) -> K {
    let mut followees: Vec<K> = edges.iter().map(|&(followee, _)| followee).collect();
    followees.sort_unstable();
    followees.get(followees.len() / 2).copied().unwrap_or_default()
}

/// Loads both halves at once. The position is noted with the first, but only once the second is in.
fn load_followers<K: IdEncoding>(
    target: &Target<'_>,
    [low, high]: [Sorter<ListRecord<K>>; 2],
    total: u64,
    progress: &dyn Fn(Progress),
) -> Result<()> {
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let high = scope.spawn(|| {
            let load = target.rows.load_part(Tree::Followers, target.kind)?;
            fill(load, high, &|| {
                done.fetch_add(REPORT_EDGES, Ordering::Relaxed);
            })?
            .finish()
        });
        let load = target.rows.load(Tree::Followers, target.kind, target.position)?;
        let low = fill(load, low, &|| {
            let done = done.fetch_add(REPORT_EDGES, Ordering::Relaxed) + REPORT_EDGES;
            progress(Progress { stage: "loading followers", done, total: Some(total) });
        });
        join(high)?;
        low?.finish()
    })
}

fn fill<'a, K: IdEncoding>(
    mut load: Load<'a>,
    sorter: Sorter<ListRecord<K>>,
    report: &dyn Fn(),
) -> Result<Load<'a>> {
    for (number, record) in (1u64..).zip(sorter.finish()?) {
        let record = record?;
        load.push(edge(record.follower, record.followee), Timestamp::from_millis(record.since))?;
        if number.is_multiple_of(REPORT_EDGES) {
            report();
        }
    }
    Ok(load)
}
