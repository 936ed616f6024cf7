//! Shards that are moved from host to host under load: nothing is lost or doubled, a process with an old map is refused, and a move that is
//! interrupted anywhere goes on or is given up.

use std::num::NonZeroU16;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge, user};
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeList, EdgeStore, Side};
use kinfolk_core::{EdgeKind, Error, Frontier, IdKind, Shard};
use kinfolk_fleet::{ChangeSource, Fleet, LogSource, MoveStep, NewDeployment, Projection, SourceBatch};

use crate::audits::audit;
use crate::deployments::{Databases, patient, process, servers, settings_of_process};
use crate::processes::{Acknowledged, Random, USERS, open, write};

pub const KIND: EdgeKind = EdgeKind::Follow;
pub const IDS: IdKind = IdKind::Integer;
const SHARDS: u16 = 4;
/// The one that is moved. It is on host b in the beginning.
pub const MOVED: Shard = Shard(1);

/// Set for the process that the test starts from its own binary.
const CHILD: &str = "KINFOLK_FLEET_MOVER";

/// How often a shard is moved: as often as the environment asks for.
fn moves() -> u32 {
    std::env::var("KINFOLK_FLEET_MOVES").ok().and_then(|moves| moves.parse().ok()).unwrap_or(4)
}

pub fn deployment() -> Option<Databases> {
    let databases = Databases::create(&servers()?);
    let new = NewDeployment { id_kind: IDS, shards: NonZeroU16::new(SHARDS).unwrap() };
    Fleet::init(&databases.settings(), new).unwrap();
    Some(databases)
}

/// The hosts in turn, beginning with the one that does not have the shard.
fn host(turn: u32) -> &'static str {
    if turn.is_multiple_of(2) { "a" } else { "b" }
}

pub fn move_to(store: &Fleet, host: &str) -> kinfolk_core::Result<()> {
    store.move_shard(MOVED, host, &|_| {})
}

/// Writers through a store of their own, and readers that check what was acknowledged.
struct Load {
    ends: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<Acknowledged>>,
    /// Milliseconds that the longest write to the moved shard took since it was last asked for.
    longest: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(writer: &Fleet, reader: &Fleet) -> Self {
        let mut load = Self {
            ends: Arc::default(),
            acknowledged: Arc::default(),
            longest: Arc::default(),
            reads: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..4 {
            let (ends, acknowledged) = (Arc::clone(&load.ends), Arc::clone(&load.acknowledged));
            let (longest, reads) = (Arc::clone(&load.longest), Arc::clone(&load.reads));
            let (writer, reader) = (writer.clone(), reader.clone());
            load.threads.push(std::thread::spawn(move || {
                let mut random = Random(number);
                while !ends.load(Ordering::Relaxed) {
                    // Each thread has pairs of its own.
                    let from = number + 4 * random.below(USERS / 4);
                    let to = (from + 1 + random.below(USERS - 1)) % USERS;
                    let action = if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
                    let edge = edge(IDS, from, to);
                    let began = Instant::now();
                    let (position, changed) = write(&writer, action, from, to).expect("writes go on");
                    if position.shard == MOVED {
                        longest.fetch_max(began.elapsed().as_millis() as u64, Ordering::Relaxed);
                    }
                    if changed {
                        acknowledged.lock().unwrap().changes.push((position, action, edge));
                    }
                    // Another store, which has never heard of a move unless it was refused.
                    let seen = Frontier::from(position);
                    let found = block_on(reader.contains(KIND, &[edge], &seen)).expect("reads go on");
                    assert_eq!(found, [action == EdgeAction::Follow], "{action:?} {edge:?} {position}");
                    let list = EdgeList { kind: KIND, side: Side::Followers, of: user(IDS, to) };
                    let followers = block_on(reader.list(list, None, 1_000, &seen)).expect("lists go on");
                    let is_listed = followers.iter().any(|entry| entry.id == edge.follower);
                    assert_eq!(is_listed, action == EdgeAction::Follow, "{action:?} {edge:?} {position}");
                    reads.fetch_add(2, Ordering::Relaxed);
                }
            }));
        }
        load
    }

    /// Waits for so many more reads.
    fn wait_for(&self, reads: u64) {
        let until = self.reads.load(Ordering::Relaxed) + reads;
        while self.reads.load(Ordering::Relaxed) < until {
            assert!(self.threads.iter().all(|thread| !thread.is_finished()), "a client has failed");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(self) -> Acknowledged {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        std::mem::take(&mut *self.acknowledged.lock().unwrap())
    }
}

/// Rows, counts and logs tell one story, and nothing of the shard is left where it was.
pub fn audit_moved(databases: &Databases, store: &Fleet, acknowledged: &Acknowledged, is_at: &str) {
    audit(store, acknowledged);
    let report = store.verify(false, &|_| {}).unwrap();
    assert_eq!(report.difference_count, 0, "{report:?}");
    let left = if is_at == "a" { 2 } else { 1 };
    for table in
        ["shards", "following", "followers", "users", "follower_counts", "log", "outgoing", "incoming_marks"]
    {
        let rows = databases.number(left, &format!("SELECT count(*) FROM {table} WHERE shard = {}", MOVED.0));
        assert_eq!(rows, 0, "{table}");
    }
    assert_eq!(block_on(store.moves()).unwrap(), []);
}

#[test]
fn a_shard_that_is_moved_back_and_forth_under_load_loses_and_doubles_nothing() {
    let Some(databases) = deployment() else { return };
    let [mover, writer, reader] =
        std::array::from_fn(|_| Fleet::open(patient(databases.settings())).unwrap());
    let _projecting = open(databases.settings());
    let load = Load::start(&writer, &reader);
    let mut pauses = Vec::new();
    for turn in 0..moves() {
        load.wait_for(200);
        load.longest.store(0, Ordering::Relaxed);
        move_to(&mover, host(turn)).unwrap();
        load.wait_for(50);
        pauses.push(load.longest.load(Ordering::Relaxed));
    }
    let acknowledged = load.end();
    pauses.sort_unstable();
    println!(
        "{} moves under load, {} changes; longest write of the moved shard around each move: {pauses:?} ms",
        moves(),
        acknowledged.changes.len()
    );
    audit_moved(&databases, &mover, &acknowledged, host(moves() - 1));
}

#[test]
fn two_shards_change_places_under_load() {
    let Some(databases) = deployment() else { return };
    let [first, second, writer, reader] =
        std::array::from_fn(|_| Fleet::open(patient(databases.settings())).unwrap());
    let _projecting = open(databases.settings());
    let load = Load::start(&writer, &reader);
    for turn in 0..2 {
        load.wait_for(100);
        std::thread::scope(|scope| {
            scope.spawn(|| move_to(&first, host(turn)).unwrap());
            scope.spawn(|| second.move_shard(Shard(0), host(turn + 1), &|_| {}).unwrap());
        });
    }
    load.wait_for(50);
    let acknowledged = load.end();
    audit_moved(&databases, &first, &acknowledged, "b");
}

/// Brings changes to host b only seconds later.
struct Behind {
    log: LogSource,
    slow: AtomicBool,
}

impl ChangeSource for Behind {
    async fn changes(
        &self,
        host: usize,
        after: &Frontier,
        limit: usize,
    ) -> kinfolk_core::Result<Vec<SourceBatch>> {
        if host == 1 && self.slow.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            return Ok(Vec::new());
        }
        self.log.changes(host, after, limit).await
    }
}

#[test]
fn a_shard_leaves_a_host_whose_follower_side_is_behind() {
    let Some(databases) = deployment() else { return };
    let store = Fleet::open(patient(databases.settings())).unwrap();
    let source = Arc::new(Behind { log: LogSource::new(&store), slow: AtomicBool::new(true) });
    Projection::start(&store, &source).detach();
    let mut acknowledged = Acknowledged::default();
    let mut random = Random(7);
    let mut change = |count: u64| {
        for _ in 0..count {
            let from = random.below(USERS);
            let to = (from + 1 + random.below(USERS - 1)) % USERS;
            let action = if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
            let (position, changed) = write(&store, action, from, to).unwrap();
            if changed {
                acknowledged.changes.push((position, action, edge(IDS, from, to)));
            }
        }
    };
    change(300);
    move_to(&store, "a").unwrap();
    change(50);
    // And back to a host that has seen nothing of all this.
    move_to(&store, "b").unwrap();
    change(50);
    source.slow.store(false, Ordering::Relaxed);
    audit_moved(&databases, &store, &acknowledged, "b");
}

/// Moves the shard until it is killed.
#[test]
fn a_mover_of_its_own() {
    let Ok(to) = std::env::var(CHILD) else { return };
    move_to(&Fleet::open(settings_of_process()).unwrap(), &to).unwrap();
}

pub struct MoverProcess(pub Child);

impl MoverProcess {
    pub fn start(databases: &Databases, to: &str) -> Self {
        let mut command = process(&databases.settings(), "moves::a_mover_of_its_own");
        Self(command.env(CHILD, to).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for MoverProcess {
    fn drop(&mut self) {
        // It may be dead already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A process is killed at some moment of its move; then the move goes on, or is given up.
#[test]
fn a_move_that_is_interrupted_goes_on_or_is_given_up() {
    let Some(databases) = deployment() else { return };
    let store = open(databases.settings());
    let mut acknowledged = Acknowledged::default();
    for from in 0..USERS {
        for to in (0..USERS).filter(|&to| to != from) {
            let (position, changed) = write(&store, EdgeAction::Follow, from, to).unwrap();
            if changed {
                acknowledged.changes.push((position, EdgeAction::Follow, edge(IDS, from, to)));
            }
        }
    }
    let mut random = Random(20_261_118);
    let (mut at, mut finished, mut aborted) = ("b", 0, 0);
    for turn in 0..2 * moves() {
        let to = if at == "a" { "b" } else { "a" };
        let mover = MoverProcess::start(&databases, to);
        // From its beginning: a process takes a moment to start.
        while block_on(store.moves()).unwrap().is_empty() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(random.below(80)));
        drop(mover);
        let left = block_on(store.moves()).unwrap();
        let is_over = left.is_empty();
        if !is_over && turn % 2 == 0 && left[0].step != Some(MoveStep::CleaningUp) {
            // Whatever the dead process was in the middle of ends within moments.
            match until_free(|| store.abort_move(MOVED)) {
                Ok(()) => {
                    aborted += 1;
                    continue;
                }
                Err(error) => assert!(error.to_string().contains("is open on host"), "{error}"),
            }
        }
        until_free(|| move_to(&store, to).or_else(already_there)).unwrap();
        (at, finished) = (to, finished + 1);
    }
    println!("{finished} moves were finished by another process, {aborted} given up");
    let (position, changed) = write(&store, EdgeAction::Unfollow, 0, 1).unwrap();
    assert!(changed);
    acknowledged.changes.push((position, EdgeAction::Unfollow, edge(IDS, 0, 1)));
    audit_moved(&databases, &store, &acknowledged, at);
}

/// Tries until the session of a process that was killed is gone.
pub fn until_free(mut attempt: impl FnMut() -> kinfolk_core::Result<()>) -> kinfolk_core::Result<()> {
    loop {
        match attempt() {
            Err(Error::InUse { .. }) => std::thread::sleep(Duration::from_millis(20)),
            outcome => return outcome,
        }
    }
}

/// The process may have been done when it was killed.
pub fn already_there(error: Error) -> kinfolk_core::Result<()> {
    if error.to_string().contains("already") { Ok(()) } else { Err(error) }
}

#[test]
fn what_can_not_be_moved_is_refused() {
    let Some(databases) = deployment() else { return };
    let store = open(databases.settings());
    let refusal = |to: &str, shard| store.move_shard(Shard(shard), to, &|_| {}).unwrap_err().to_string();
    assert!(refusal("b", 1).contains("is on host b already"));
    assert!(refusal("c", 1).contains("has no host c"));
    assert!(refusal("a", 99).contains("no shard 99"));
    assert!(store.abort_move(MOVED).unwrap_err().to_string().contains("is not being moved"));
    // A process of the first version names its connections without a generation.
    let older = databases.connection_named(2, "kinfolk api 4711");
    let refused = refusal("a", 1);
    assert!(refused.contains("process 4711 (api)") && refused.contains("restart it"), "{refused}");
    drop(older);
    assert_eq!(block_on(store.moves()).unwrap(), []);
}

/// A host that is added later holds no shard at first.
#[test]
fn a_host_is_added_and_takes_a_shard() {
    let Some(databases) = deployment() else { return };
    let store = open(databases.settings());
    let mut acknowledged = Acknowledged::default();
    let mut follow = |store: &Fleet, from: u64| {
        for to in (0..USERS).filter(|&to| to != from) {
            let (position, changed) = write(store, EdgeAction::Follow, from, to).unwrap();
            assert!(changed);
            acknowledged.changes.push((position, EdgeAction::Follow, edge(IDS, from, to)));
        }
    };
    (0..6).for_each(|from| follow(&store, from));
    let settings = databases.settings_with_third_host();
    let new = NewDeployment { id_kind: IDS, shards: NonZeroU16::new(SHARDS).unwrap() };
    Fleet::init(&settings, new).unwrap();
    assert!(Fleet::init(&settings, new).is_err(), "there is nothing to add any more");
    drop(store);
    let store = open(settings);
    (6..12).for_each(|from| follow(&store, from));
    move_to(&store, "c").unwrap();
    (12..18).for_each(|from| follow(&store, from));
    audit(&store, &acknowledged);
    assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);
    let status = block_on(store.status()).unwrap();
    let held: Vec<usize> = status.hosts.iter().map(|host| host.shards).collect();
    assert_eq!(held, [2, 1, 1]);
}
