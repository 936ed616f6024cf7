//! The faults of the campaign: those of the databases and of processes here, those of Redis and Kafka in [`LayerFault`].

use std::net::TcpListener;
use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::{Error, Shard};
use kinfolk_fleet::Fleet;
use rustix::process::Signal;

use super::{Fixture, SHARDS};
use crate::layer_faults::LayerFault;
use crate::processes::Random;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Of Redis, of Kafka, or of all workers.
    Layer(LayerFault),
    /// The broker dies, and comes back on its data.
    KafkaKilled,
    /// One of two workers dies, and another one is started.
    WorkerKilled,
    /// One of two workers is stopped, for longer than every timeout.
    WorkerStopped,
    /// All processes of a primary die at once; it comes back on its data.
    HostKilled,
    /// All processes of a primary are stopped, for longer than every timeout.
    HostStopped,
    /// A host ends all connections, again and again.
    Disconnected,
    /// Connections are cut before and after COMMIT is sent.
    CommitsCut,
    /// No reply reaches the process that writes.
    Silent,
    /// The standby of a host stands still: commits wait.
    StandbyStalled,
    /// The standby of a host dies and comes back: commits wait.
    StandbyKilled,
    /// A primary is fenced and its standby promoted; later the old primary becomes the standby.
    Promoted,
    /// The same, and the address of the old primary accepts connections and never answers.
    PromotedBesideSilence,
    /// The standby stands still, the primary dies with commits that wait and comes back; then the standby is promoted.
    CutAndPromoted,
    /// The catalog dies, and comes back on its data.
    CatalogKilled,
    /// A process that checks is restarted, and its saved filters are damaged.
    FiltersDamaged,
    /// The clock of the process that writes jumps two hours ahead, and back.
    ClockAhead,
    /// The same clock jumps two hours back, and ahead again.
    ClockBack,
    /// A shard is moved to the other host and back.
    ShardMoved,
    /// The same, while a primary dies and comes back.
    ShardMovedAndHostKilled,
    /// The same, while the standby of a host is promoted.
    ShardMovedAndPromoted,
}

/// All but those of layers.
const OWN: [Fault; 20] = [
    Fault::KafkaKilled,
    Fault::WorkerKilled,
    Fault::WorkerStopped,
    Fault::HostKilled,
    Fault::HostStopped,
    Fault::Disconnected,
    Fault::CommitsCut,
    Fault::Silent,
    Fault::StandbyStalled,
    Fault::StandbyKilled,
    Fault::Promoted,
    Fault::PromotedBesideSilence,
    Fault::CutAndPromoted,
    Fault::CatalogKilled,
    Fault::FiltersDamaged,
    Fault::ClockAhead,
    Fault::ClockBack,
    Fault::ShardMoved,
    Fault::ShardMovedAndHostKilled,
    Fault::ShardMovedAndPromoted,
];

const HOURS: Duration = Duration::from_secs(2 * 60 * 60);

impl Fault {
    /// All kinds, or those that `KINFOLK_FLEET_ONLY` names.
    pub fn all() -> Vec<Self> {
        let layers = LayerFault::ALL.into_iter().filter(|fault| *fault != LayerFault::Nothing);
        let only = std::env::var("KINFOLK_FLEET_ONLY").unwrap_or_default();
        let is_asked =
            |fault: &Self| only.is_empty() || only.split(',').any(|name| format!("{fault:?}").contains(name));
        layers.map(Self::Layer).chain(OWN).filter(is_asked).collect()
    }

    /// How long it lasts: some only make sense if they outlast all timeouts.
    pub fn lasts(self, is_long: bool, random: &mut Random) -> Duration {
        let outlasts = matches!(self, Self::HostStopped | Self::WorkerStopped | Self::Silent);
        Duration::from_secs(match (outlasts, is_long) {
            (true, true) => 12 + random.below(19),
            (true, false) => 12,
            (false, true) => 2 + random.below(9),
            (false, false) => 2,
        })
    }

    /// Makes the fault last for about some time, and undoes it.
    pub fn inject(self, fixture: &mut Fixture, random: &mut Random, lasts: Duration) {
        let host = random.below(2) as usize;
        let wait = || std::thread::sleep(lasts);
        match self {
            Self::Layer(fault) => fault.inject(&mut fixture.layers, random, lasts),
            Self::KafkaKilled => {
                fixture
                    .layers
                    .kafka
                    .signal(random.below(fixture.layers.kafka.len() as u64) as usize, Signal::KILL);
                wait();
                fixture.layers.kafka.restart();
            }
            Self::WorkerKilled => {
                let worker = fixture.start_worker();
                fixture.layers.workers[host] = worker;
            }
            Self::WorkerStopped => {
                fixture.layers.workers[host].signal(Signal::STOP);
                wait();
                fixture.layers.workers[host].signal(Signal::CONT);
            }
            Self::Disconnected => disconnect(fixture, host, lasts),
            Self::CommitsCut => {
                fixture.proxies.cut_every(3);
                wait();
                fixture.proxies.cut_every(0);
            }
            Self::Silent => {
                fixture.proxies.freeze(true);
                wait();
                fixture.proxies.freeze(false);
            }
            Self::CatalogKilled => {
                fixture.catalog.kill();
                wait();
                fixture.catalog.restart();
            }
            Self::FiltersDamaged => fixture.restart_reader_with_damaged_filters(host),
            Self::ClockAhead | Self::ClockBack => jump(fixture, self == Self::ClockAhead, lasts),
            Self::ShardMoved => move_back_and_forth(&mover(fixture), random, lasts),
            Self::ShardMovedAndHostKilled => {
                move_beside(fixture, random, lasts, |fixture| {
                    Self::HostKilled.inject_into_pair(fixture, host, lasts);
                });
            }
            Self::ShardMovedAndPromoted => {
                move_beside(fixture, random, lasts, |fixture| {
                    Self::Promoted.inject_into_pair(fixture, host, lasts);
                });
            }
            _ => self.inject_into_pair(fixture, host, lasts),
        }
    }

    fn inject_into_pair(self, fixture: &mut Fixture, host: usize, lasts: Duration) {
        let pair = &mut fixture.pairs[host];
        let wait = || std::thread::sleep(lasts);
        match self {
            Self::HostKilled => {
                pair.kill_primary();
                wait();
                pair.restart();
            }
            Self::HostStopped => {
                let _stopped = pair.stop_primary();
                wait();
            }
            Self::StandbyStalled => {
                let _stalled = pair.stall();
                wait();
            }
            Self::StandbyKilled => {
                pair.kill_standby();
                wait();
                pair.restart();
            }
            Self::Promoted => {
                pair.promote();
                wait();
                pair.rejoin();
            }
            Self::PromotedBesideSilence => {
                pair.promote();
                let address = pair.standby().split(['@', '/']).nth(3).unwrap().to_owned();
                // As a machine does that has lost its power: nobody says that nobody is there.
                let _silent = TcpListener::bind(address).unwrap();
                wait();
                drop(_silent);
                pair.rejoin();
            }
            Self::CutAndPromoted => {
                let stalled = pair.stall();
                while pair.waiting() == 0 {}
                pair.kill_primary();
                pair.restart();
                wait();
                // It gets nothing more from the primary.
                pair.kill_primary();
                drop(stalled);
                pair.promote();
                pair.rejoin();
            }
            other => unreachable!("{other:?}"),
        }
    }
}

/// A process that moves shards has connections of its own.
fn mover(fixture: &Fixture) -> Fleet {
    Fleet::open(fixture.settings.clone()).unwrap()
}

/// Moves a shard to the host that it is not on in the beginning, and back after a while.
fn move_back_and_forth(mover: &Fleet, random: &mut Random, lasts: Duration) {
    let shard = Shard(random.below(SHARDS.into()) as u16);
    let [home, other] = if shard.0.is_multiple_of(2) { ["a", "b"] } else { ["b", "a"] };
    move_to(mover, shard, other);
    std::thread::sleep(lasts / 2);
    move_to(mover, shard, home);
}

/// Moves a shard as an operator does: while a host does not answer, the command fails, and is run again.
fn move_to(mover: &Fleet, shard: Shard, to: &str) {
    let began = Instant::now();
    loop {
        match mover.move_shard(shard, to, &|_| {}) {
            Ok(()) => return,
            // The last step of an attempt that has failed.
            Err(Error::InvalidStore { detail }) if detail.contains("already") => return,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(120), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Moves a shard while something else happens.
fn move_beside(
    fixture: &mut Fixture,
    random: &mut Random,
    lasts: Duration,
    other: impl FnOnce(&mut Fixture),
) {
    let mover = mover(fixture);
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| move_back_and_forth(&mover, random, lasts));
        other(fixture);
        moved.join().unwrap();
    });
}

/// Ends the connections of all processes to a host, about twice a second.
fn disconnect(fixture: &Fixture, host: usize, lasts: Duration) {
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    for _ in 0..lasts.as_millis() / 500 {
        fixture.databases.beside(1 + host, end);
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A process whose clock is ahead says so; the times of a shard never go back, which the audit verifies.
fn jump(fixture: &Fixture, is_ahead: bool, lasts: Duration) {
    let _jumped =
        fixture.clock.jump(if is_ahead { HOURS.as_millis() as i64 } else { -(HOURS.as_millis() as i64) });
    let mut reason = None;
    for _ in 0..100 {
        reason = block_on(fixture.writer.not_ready()).unwrap();
        if reason.is_some() == is_ahead {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(reason.is_some(), is_ahead, "{reason:?}");
    std::thread::sleep(lasts);
}
