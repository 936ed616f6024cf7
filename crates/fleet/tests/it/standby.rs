//! A host with a synchronous standby that stalls, behind a proxy that cuts commits: nothing that was acknowledged is lost, nothing
//! is invented, and the promoted standby has all of it. Repair is off.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge};
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction};
use kinfolk_core::{EdgeKind, IdKind};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection};

use crate::audits::audit;
use crate::deployments::{Databases, asked, servers};
use crate::lost_commits::Proxies;
use crate::pairs::Pair;
use crate::processes::{USERS, open};
use crate::story::{Outcome, Story};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
const WRITERS: u64 = USERS;

/// One of so many commits is cut.
const CUT_EVERY: u64 = 3;

/// How many connections are cut after their COMMIT was sent: as many as the environment asks for.
fn cuts() -> u64 {
    asked("KINFOLK_FLEET_CUTS", 60)
}

/// So many stalls are enough, whatever was cut.
const STALLS_MAX: u64 = 1_000;

/// Writes to edges of a follower that is this writer's own, until it is told to end.
fn write(store: &Fleet, writer: u64, is_over: &AtomicBool) -> Story {
    let mut story = Story::default();
    for number in 0_u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let to = (writer + 1 + number * 7 % (USERS - 1)) % USERS;
        let action = if number % 5 < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
        write_one(&mut story, store, action, edge(IDS, writer, to));
    }
    story
}

fn write_one(story: &mut Story, store: &Fleet, action: EdgeAction, edge: Edge) {
    let Outcome::Acknowledged(position) = story.write(store, action, edge) else { return };
    // A host may refuse while it is cut off; what it answers is what was acknowledged.
    if let Ok(exists) = block_on(store.contains(KIND, &[edge], &position.into())) {
        let is_certain = story.unknown.iter().all(|(_, unknown)| *unknown != edge);
        assert!(!is_certain || exists[0] == (action == EdgeAction::Follow), "{action:?} {edge:?}");
    }
}

/// Stalls the standby again and again until enough connections were cut, some of them during a stall. Returns how many these were.
fn stall(pair: &Pair, proxies: &Proxies) -> u64 {
    let cut = || proxies.count(|cuts| &cuts.after);
    let mut during = 0;
    // A stall takes in a few commits, and one of them is cut only now and then.
    for round in 0..STALLS_MAX {
        if cut() >= cuts() && during > 0 {
            break;
        }
        let before = cut();
        let stalled = pair.stall();
        // Some stalls are longer than all timeouts together.
        let length = Duration::from_millis(if round % 8 == 2 { 12_000 } else { 300 });
        let began = Instant::now();
        while pair.waiting() == 0 || began.elapsed() < length {}
        drop(stalled);
        during += cut() - before;
        // All that has waited goes on.
        let before = cut();
        while cut() < before + 8 {
            pair.waiting();
        }
    }
    during
}

#[test]
fn commits_that_are_cut_while_the_standby_stalls_are_settled() {
    let Some(servers) = servers() else { return };
    let mut pair = Pair::start(&["fsync=off", "max_connections=300"]);
    let servers = [servers[0].clone(), pair.primary().to_owned(), servers[2].clone()];
    let mut databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(32).unwrap() }).unwrap();
    let proxies = Proxies::cutting(CUT_EVERY);
    let store = Fleet::open(proxies.before(settings.clone(), &["a"])).unwrap();
    let projection = Projection::start(&store, &Arc::new(LogSource::new(&store)));

    let (mut story, is_over) = (Story::default(), AtomicBool::new(false));
    let during = std::thread::scope(|scope| {
        let write = |writer| {
            let (store, is_over) = (&store, &is_over);
            scope.spawn(move || write(store, writer, is_over))
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        let during = stall(&pair, &proxies);
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| story.append(writer.join().unwrap()));
        during
    });
    println!(
        "of the host with the standby, {} commits were cut after they were sent, {during} of them during a stall, and {} before; {} changes acknowledged, {} unknown, \
         {} refused",
        proxies.count(|cuts| &cuts.after),
        proxies.count(|cuts| &cuts.before),
        story.acknowledged.len(),
        story.unknown.len(),
        story.refused
    );
    assert!(during > 0, "no commit was cut during a stall");
    drop((projection, store));

    let acknowledged = story.changes();
    let store = open(settings);
    audit(&store, &acknowledged);
    story.check(&store);
    drop(store);

    // The primary is lost; the standby takes its place.
    databases.move_to(1, pair.standby());
    pair.promote();
    let store = open(databases.settings());
    audit(&store, &acknowledged);
    story.check(&store);
    let before = story.acknowledged.len();
    (0..USERS).for_each(|from| write_one(&mut story, &store, EdgeAction::Follow, edge(IDS, from, USERS)));
    assert_eq!(story.acknowledged.len() - before, USERS as usize, "the promoted standby is written");
    story.check(&store);
}
