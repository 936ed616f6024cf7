//! All that the sharded store keeps, and how it is written, restarted and restored.

use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Epoch, Frontier, Id, Position, Result, Sequence, Shard, Timestamp};

use super::Sharding;
use super::cache::Cache;
use super::delivery::Late;
use super::fault::LagFault;
use super::filter::Filter;
use super::host::{Holding, Host};
use super::routing::{Process, ShardMap};
use super::source::Source;
use crate::random::Random;

/// The number of hosts.
pub(super) const HOSTS: usize = 2;

/// The most changes of a shard that a restore loses.
const LOST_MAX: u64 = 6;

pub(super) struct State {
    pub(super) sharding: Sharding,
    pub(super) epoch: Epoch,
    pub(super) random: Random,
    pub(super) fault: Option<LagFault>,
    pub(super) hosts: [Host; HOSTS],
    /// The catalog's.
    pub(super) map: ShardMap,
    pub(super) process: Process,
    /// One for each shard.
    pub(super) filters: Vec<Filter>,
    /// One for each shard.
    pub(super) caches: Vec<Cache>,
    /// Messages on their way.
    pub(super) late: Vec<Late>,
    pub(super) paused: bool,
    /// What the client whose token is replaced has seen last.
    pub(super) last_written: Option<Position>,
}

impl State {
    pub(super) fn new(sharding: Sharding, fault: Option<LagFault>) -> Self {
        let count = sharding.shards.get();
        let map = ShardMap::new(count);
        let mut hosts = [Host::new(count), Host::new(count)];
        for shard in (0..count).map(Shard) {
            hosts[map.host(shard)].holdings.insert(shard, Holding::new(Source::new(shard)));
        }
        Self {
            sharding,
            epoch: Epoch(1),
            random: Random::new(sharding.seed),
            fault,
            hosts,
            process: Process::new(map.clone(), count),
            map,
            filters: vec![Filter::default(); usize::from(count)],
            caches: vec![Cache::default(); usize::from(count)],
            late: Vec::new(),
            paused: false,
            last_written: None,
        }
    }

    pub(super) fn has(&self, fault: LagFault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.sharding.shards.get()).map(Shard)
    }

    pub(super) fn shard_of(&self, id: Id) -> Shard {
        Shard::of(id, self.sharding.shards)
    }

    /// The open holding of a shard, wherever it is.
    pub(super) fn holding(&self, shard: Shard) -> &Holding {
        self.hosts[self.map.host(shard)].open(shard).expect("the map leads to an open shard")
    }

    pub(super) fn source(&self, shard: Shard) -> &Source {
        &self.holding(shard).source
    }

    pub(super) fn newest(&self) -> Frontier {
        self.shards().map(|shard| self.source(shard).newest()).collect()
    }

    pub(super) fn write(&mut self, request: &WriteRequest, now: Timestamp) -> Result<Receipt> {
        let shard = self.shard_of(request.follower);
        let host = self.route_write(shard);
        let holding = self.hosts[host].open_mut(shard).expect("a write reaches an open shard");
        let receipt = holding.source.write(request, now)?;
        self.last_written = Some(receipt.position);
        Ok(receipt)
    }

    /// Trims the logs of some shards, as the seed has it.
    pub(super) fn trim(&mut self) {
        for shard in self.shards() {
            let trimmable = self.source(shard).trimmable();
            let count = self.random.below(2) * self.random.below(trimmable + 1);
            let host = self.map.host(shard);
            let holding = self.hosts[host].open_mut(shard).expect("the map leads to an open shard");
            holding.source.trim(count);
        }
    }

    pub(super) fn restart_processes(&mut self) {
        let count = self.sharding.shards.get();
        // A reader with an old map has it from somewhere else than from its own memory.
        if !self.has(LagFault::OldShardMap) {
            self.process = Process::new(self.map.clone(), count);
        }
        self.filters = vec![Filter::default(); usize::from(count)];
    }

    /// Every shard goes back to a backup. Marks are reset and the follower side is rebuilt from the sources; the layers of
    /// checks begin anew. Messages stay on their way: their epoch is the old one.
    pub(super) fn new_epoch(&mut self) {
        self.epoch = Epoch(self.epoch.0 + 1);
        for shard in self.shards() {
            let newest = self.source(shard).newest().sequence.0;
            let kept = newest - self.random.below(LOST_MAX.min(newest) + 1);
            let restored = self.source(shard).restored(kept);
            let term = self.holding(shard).term + 1;
            let host = &mut self.hosts[self.map.host(shard)];
            host.holdings.insert(shard, Holding { term, ..Holding::new(restored) });
        }
        for host in &mut self.hosts {
            host.marks.fill(Sequence::START);
            host.generation += 1;
            host.holdings.retain(|_, holding| holding.is_open);
        }
        let count = usize::from(self.sharding.shards.get());
        self.filters = vec![Filter::default(); count];
        self.caches = vec![Cache::default(); count];
        self.process = Process::new(self.map.clone(), self.sharding.shards.get());
        self.last_written = None;
    }
}
