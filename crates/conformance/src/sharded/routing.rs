//! Who holds which shard: the versioned map of the catalog, what a process knows of it, and moves.

use kinfolk_core::{Position, Sequence, Shard};

use super::fault::LagFault;
use super::host::Holding;
use super::state::{HOSTS, State};

/// The host of each shard.
#[derive(Clone, Debug)]
pub(super) struct ShardMap {
    /// Rises with every move.
    version: u64,
    hosts: Vec<usize>,
}

impl ShardMap {
    pub(super) fn new(shards: u16) -> Self {
        Self { version: 1, hosts: (0..usize::from(shards)).map(|shard| shard % HOSTS).collect() }
    }

    pub(super) fn host(&self, shard: Shard) -> usize {
        self.hosts[usize::from(shard.0)]
    }
}

/// The state of the process in front of the hosts.
pub(super) struct Process {
    map: ShardMap,
    /// For each host and source, the highest mark that was seen, and the generation of marks that it belongs to.
    marks: Vec<(u64, Vec<Sequence>)>,
}

impl Process {
    pub(super) fn new(map: ShardMap, shards: u16) -> Self {
        Self { map, marks: vec![(0, vec![Sequence::START; usize::from(shards)]); HOSTS] }
    }
}

impl State {
    /// The host that a reader asks for a shard. A host refuses a shard that it does not hold any more; the reader then loads
    /// the map again.
    pub(super) fn route(&mut self, shard: Shard) -> usize {
        let known = self.process.map.host(shard);
        let answers = self.hosts[known]
            .holdings
            .get(&shard)
            .is_some_and(|holding| holding.is_open || self.fault == Some(LagFault::OldShardMap));
        if answers {
            return known;
        }
        self.load_map();
        self.map.host(shard)
    }

    /// As [`State::route`], for a write. No fault makes a closed shard accept one.
    pub(super) fn route_write(&mut self, shard: Shard) -> usize {
        let known = self.process.map.host(shard);
        if self.hosts[known].open(shard).is_some() {
            return known;
        }
        if !self.has(LagFault::OldShardMap) {
            self.load_map();
        }
        self.map.host(shard)
    }

    fn load_map(&mut self) {
        assert!(self.process.map.version < self.map.version, "only an old map leads to the wrong host");
        self.process.map = self.map.clone();
    }

    /// What a reader is answered about a shard by the host that it asks.
    pub(super) fn read_holding(&mut self, shard: Shard) -> &Holding {
        let host = self.route(shard);
        &self.hosts[host].holdings[&shard]
    }

    /// Whether the follower side of a host shows a position. Marks never go back within a generation, so that one that was
    /// seen need not be read again.
    pub(super) fn mark_covers(&mut self, host: usize, position: Position) -> bool {
        let source = usize::from(position.shard.0);
        let (generation, known) = &mut self.process.marks[host];
        if *generation != self.hosts[host].generation {
            *generation = self.hosts[host].generation;
            known.fill(Sequence::START);
        }
        known[source] = known[source].max(self.hosts[host].marks[source]);
        let mut seen = known[source];
        if self.fault == Some(LagFault::HostAhead) {
            seen = seen.max(self.hosts[1 - host].marks[source]);
        }
        seen >= position.sequence
    }

    /// Moves a shard to the other host: its rows are copied, the old host closes it, the new one opens it with the next term.
    /// The new host's marks are lowered to what both have, as the rows come from one and the marks from the other.
    pub(super) fn move_shard(&mut self, shard: Shard) {
        let from = self.map.host(shard);
        let to = 1 - from;
        let old = self.hosts[from].open_mut(shard).expect("the map leads to an open shard");
        let mut moved = old.clone();
        old.is_open = false;
        moved.term += 1;
        let marks = self.hosts[from].marks.clone();
        let host = &mut self.hosts[to];
        let known = host.holdings.insert(shard, moved);
        assert!(known.is_none_or(|holding| !holding.is_open), "a shard has one owner");
        for (mark, of_old) in host.marks.iter_mut().zip(marks) {
            *mark = (*mark).min(of_old);
        }
        host.generation += 1;
        self.map.hosts[usize::from(shard.0)] = to;
        self.map.version += 1;
    }
}
