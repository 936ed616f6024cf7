//! Which connections have read a key since it was last invalidated, and which want to hear of all keys with a prefix.
//!
//! It is bounded, as the tracking table of Redis is: when it is full, a key is forgotten, and its readers drop it from their
//! caches. Connections that have ended leave their reads behind, until the keys change or are forgotten.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;
use std::sync::Arc;

use indexmap::IndexMap;
use kinfolk_core::Position;
use kinfolk_core::graph::{Side, UserSet};

use super::TrackingStats;
use super::outbox::{Invalidation, Outbox};
use super::subscription::{Mode, Wanted};

/// How many changes of its own a connection remembers. Of older ones it may hear, which does no harm.
const OWN_MAX: usize = 10_000;

/// Readers and listeners of keys.
#[derive(Debug)]
pub(super) struct Table {
    subscribers: HashMap<u64, Subscriber>,
    /// How many of them hear of all keys with a prefix.
    listeners: usize,
    /// For each key its readers, sorted.
    readers: IndexMap<UserSet, Vec<Reader>>,
    /// How many readers all keys have.
    items: usize,
    items_max: usize,
    /// Where the next key to forget is looked for.
    hand: usize,
}

/// A connection that receives invalidations.
#[derive(Debug)]
struct Subscriber {
    outbox: Arc<Outbox>,
    /// For one that hears of all keys with these prefixes instead of those that it reads.
    prefixes: Option<Vec<Box<[u8]>>>,
    /// Its last changes, for one that does not hear of them.
    own: Option<OwnChanges>,
    /// Whether its client has read something since it dropped everything.
    may_cache: bool,
}

impl Subscriber {
    /// Whether it has made this change, and does not want to hear of it.
    fn has_written(&self, position: Position) -> bool {
        self.own.as_ref().is_some_and(|own| own.known.contains(&position))
    }

    /// Whether this change is one of its own, or may be one that it does not know of yet.
    fn may_have_written(&self, position: Position) -> bool {
        self.own.as_ref().is_some_and(|own| own.is_writing || own.known.contains(&position))
    }
}

/// The last changes of a connection.
#[derive(Debug, Default)]
struct OwnChanges {
    known: HashSet<Position>,
    /// The oldest first.
    order: VecDeque<Position>,
    /// Set while a write is with the store.
    is_writing: bool,
}

impl OwnChanges {
    fn add(&mut self, position: Position) {
        self.known.insert(position);
        self.order.push_back(position);
        if self.order.len() > OWN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// A connection that has read a key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reader {
    connection: u64,
    /// How its client writes the key, if not in the usual way: `following:007`.
    name: Option<Arc<[u8]>>,
}

impl Table {
    pub(crate) fn new(items_max: usize) -> Self {
        let (subscribers, readers) = (HashMap::new(), IndexMap::new());
        Self { subscribers, listeners: 0, readers, items: 0, items_max, hand: 0 }
    }

    pub(crate) fn add(&mut self, connection: u64, outbox: Arc<Outbox>, wanted: &Wanted) {
        let prefixes =
            if let Mode::Broadcast(prefixes) = &wanted.mode { Some(prefixes.clone()) } else { None };
        let own = wanted.is_no_loop.then(OwnChanges::default);
        self.listeners += usize::from(prefixes.is_some());
        self.subscribers.insert(connection, Subscriber { outbox, prefixes, own, may_cache: false });
    }

    /// Whether a connection receives invalidations, and if so, whether it hears of all keys with a prefix.
    pub(crate) fn listens(&self, connection: u64) -> Option<bool> {
        self.subscribers.get(&connection).map(|subscriber| subscriber.prefixes.is_some())
    }

    /// The changes of a connection, if it does not want to hear of them.
    fn own(&mut self, connection: u64) -> Option<&mut OwnChanges> {
        self.subscribers.get_mut(&connection).and_then(|subscriber| subscriber.own.as_mut())
    }

    /// A connection has a write with the store, or none any more.
    pub(crate) fn set_writing(&mut self, connection: u64, is_writing: bool) {
        if let Some(own) = self.own(connection) {
            own.is_writing = is_writing;
        }
    }

    /// A connection has made a change.
    pub(crate) fn written_by(&mut self, connection: u64, position: Position) {
        if let Some(own) = self.own(connection) {
            own.add(position);
        }
    }

    /// Positions will be given out again.
    pub(crate) fn forget_own(&mut self) {
        for own in self.subscribers.values_mut().filter_map(|subscriber| subscriber.own.as_mut()) {
            *own = OwnChanges { is_writing: own.is_writing, ..OwnChanges::default() };
        }
    }

    pub(crate) fn remove(&mut self, connection: u64) {
        let left = self.subscribers.remove(&connection);
        self.listeners -= usize::from(left.is_some_and(|subscriber| subscriber.prefixes.is_some()));
        if self.subscribers.is_empty() {
            self.forget_readers();
        }
    }

    fn forget_readers(&mut self) {
        self.readers = IndexMap::new();
        self.items = 0;
    }

    /// Leaves out what a connection has changed itself, if it does not want to hear of that.
    pub(crate) fn drop_own(&self, connection: u64, keys: &mut Vec<Invalidation>) {
        if let Some(subscriber) = self.subscribers.get(&connection) {
            keys.retain(|key| !key.position.is_some_and(|position| subscriber.has_written(position)));
        }
    }

    /// A connection is about to read something.
    pub(crate) fn will_read(&mut self, connection: u64) {
        if let Some(subscriber) = self.subscribers.get_mut(&connection) {
            subscriber.may_cache = true;
        }
    }

    /// Remembers that a connection reads a key, which its client calls `name`.
    pub(crate) fn register(&mut self, connection: u64, key: UserSet, name: &[u8]) {
        let is_usual = *name_of(key) == *name;
        let subscriber = self.subscribers.get(&connection);
        if is_usual && subscriber.is_some_and(|subscriber| subscriber.prefixes.is_some()) {
            // It hears of the usual name anyway, if it wants to.
            return;
        }
        let reader = Reader { connection, name: (!is_usual).then(|| name.into()) };
        let readers = self.readers.entry(key).or_default();
        if let Err(at) = readers.binary_search(&reader) {
            readers.insert(at, reader);
            self.items += 1;
        }
        while self.items > self.items_max {
            self.forget_one();
        }
    }

    /// Forgets a key, in no particular order.
    fn forget_one(&mut self) {
        self.hand = if self.hand >= self.readers.len() { 0 } else { self.hand };
        if let Some((key, readers)) = self.readers.swap_remove_index(self.hand) {
            self.invalidate_for(key, readers, None);
        }
        self.hand += 1;
    }

    /// A key has changed: those who listen to its prefix drop it.
    pub(crate) fn invalidate_listeners(&self, key: UserSet, position: Position) {
        if self.listeners == 0 {
            return;
        }
        let mut name = None;
        for subscriber in self.subscribers.values() {
            let Subscriber { outbox, prefixes: Some(prefixes), .. } = subscriber else { continue };
            if subscriber.has_written(position) {
                continue;
            }
            let name = name.get_or_insert_with(|| name_of(key));
            if prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                outbox.add(Invalidation { name: Arc::clone(name), position: Some(position) });
            }
        }
    }

    /// A key has changed: its readers drop it.
    pub(crate) fn invalidate_readers(&mut self, key: UserSet, position: Position) {
        let Some(mut readers) = self.readers.swap_remove(&key) else { return };
        // A writer that does not hear of its own change goes on to hear of others. One that is writing finds out when it sends.
        let is_writer = |reader: &mut Reader| {
            let subscriber = self.subscribers.get(&reader.connection);
            subscriber.is_some_and(|subscriber| subscriber.may_have_written(position))
        };
        let writers: Vec<Reader> = readers.extract_if(.., is_writer).collect();
        for reader in &writers {
            if let Some(subscriber) = self.subscribers.get(&reader.connection)
                && !subscriber.has_written(position)
            {
                let name = reader.name.clone().unwrap_or_else(|| name_of(key));
                subscriber.outbox.add(Invalidation { name, position: Some(position) });
            }
        }
        if !writers.is_empty() {
            self.readers.insert(key, writers);
        }
        self.invalidate_for(key, readers, Some(position));
    }

    fn invalidate_for(&mut self, key: UserSet, readers: Vec<Reader>, position: Option<Position>) {
        self.items -= readers.len();
        let usual = name_of(key);
        for Reader { connection, name } in readers {
            if let Some(subscriber) = self.subscribers.get(&connection) {
                let name = name.unwrap_or_else(|| Arc::clone(&usual));
                subscriber.outbox.add(Invalidation { name, position });
            }
        }
    }

    /// Every client that may have cached something drops everything.
    pub(crate) fn invalidate_all(&mut self) {
        for subscriber in self.subscribers.values_mut() {
            // A listener's client may cache what it reads on other connections.
            if std::mem::take(&mut subscriber.may_cache) || subscriber.prefixes.is_some() {
                subscriber.outbox.add_everything();
            }
        }
        self.forget_readers();
    }

    pub(crate) fn stats(&self) -> TrackingStats {
        let prefixes = |subscriber: &Subscriber| subscriber.prefixes.as_ref().map_or(0, Vec::len);
        TrackingStats {
            clients: self.subscribers.len(),
            keys: self.readers.len(),
            items: self.items,
            prefixes: self.subscribers.values().map(prefixes).sum(),
        }
    }
}

/// The usual name of a key.
fn name_of(UserSet { side, of }: UserSet) -> Arc<[u8]> {
    let family = match side {
        Side::Following => "following",
        Side::Followers => "followers",
    };
    let mut name = Vec::with_capacity(48);
    let _ = write!(name, "{family}:{of}");
    name.into()
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{Id, Sequence, Shard};

    use super::super::outbox::Pending;
    use super::*;

    const AT: Position = Position { shard: Shard(0), sequence: Sequence(1) };

    fn following(id: u64) -> UserSet {
        UserSet { side: Side::Following, of: Id::Integer(id) }
    }

    fn subscriber(table: &mut Table, connection: u64) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::default());
        table.add(connection, Arc::clone(&outbox), &Wanted { mode: Mode::Default, is_no_loop: false });
        outbox
    }

    fn names(outbox: &Outbox) -> Vec<String> {
        match outbox.take() {
            Pending::Keys(keys) => {
                keys.iter().map(|key| String::from_utf8(key.name.to_vec()).unwrap()).collect()
            }
            Pending::Everything => vec!["everything".to_owned()],
        }
    }

    #[test]
    fn a_reader_hears_of_the_first_change_in_its_own_words() {
        let mut table = Table::new(100);
        let (one, two) = (subscriber(&mut table, 1), subscriber(&mut table, 2));
        table.register(1, following(7), b"following:7");
        table.register(1, following(7), b"following:7");
        table.register(2, following(7), b"following:007");
        assert_eq!(table.stats(), TrackingStats { clients: 2, keys: 1, items: 2, prefixes: 0 });
        table.invalidate_readers(following(7), AT);
        table.invalidate_readers(following(7), AT);
        assert_eq!(names(&one), ["following:7"]);
        assert_eq!(names(&two), ["following:007"]);
        table.register(1, following(7), b"following:7");
        table.register(1, following(7), b"following:07");
        table.invalidate_readers(following(7), AT);
        assert_eq!(names(&one), ["following:7", "following:07"], "each name that it has used");
        assert_eq!(table.stats(), TrackingStats { clients: 2, keys: 0, items: 0, prefixes: 0 });
    }

    #[test]
    fn a_full_table_forgets_keys_and_says_so() {
        let mut table = Table::new(10);
        let one = subscriber(&mut table, 1);
        for id in 0..1_000 {
            let name = format!("following:{id}");
            table.register(1, following(id), name.as_bytes());
            assert!(table.items <= 10);
        }
        let mut forgotten = names(&one);
        assert_eq!(forgotten.len(), 990);
        forgotten.sort();
        forgotten.dedup();
        assert_eq!(forgotten.len(), 990, "each once");
    }

    #[test]
    fn readers_that_have_left_cost_nothing_in_the_end() {
        let mut table = Table::new(100);
        let one = subscriber(&mut table, 1);
        let two = subscriber(&mut table, 2);
        table.register(1, following(7), b"following:7");
        table.register(2, following(7), b"following:7");
        table.remove(1);
        table.invalidate_readers(following(7), AT);
        assert!(one.take().is_empty());
        assert_eq!(names(&two), ["following:7"]);
        table.register(2, following(7), b"following:7");
        table.remove(2);
        assert_eq!(table.stats(), TrackingStats::default());
    }

    #[test]
    fn a_writer_that_does_not_hear_of_its_change_hears_of_the_next_one() {
        let mut table = Table::new(100);
        let one = Arc::new(Outbox::default());
        table.add(1, Arc::clone(&one), &Wanted { mode: Mode::Default, is_no_loop: true });
        let two = subscriber(&mut table, 2);
        table.register(1, following(7), b"following:7");
        table.register(2, following(7), b"following:7");
        table.written_by(1, AT);
        table.written_by(2, AT.next());
        table.invalidate_readers(following(7), AT);
        assert!(one.take().is_empty());
        assert_eq!(names(&two), ["following:7"]);
        assert_eq!(table.stats().items, 1);
        table.invalidate_readers(following(7), AT.next());
        assert_eq!(names(&one), ["following:7"]);
        assert_eq!(table.stats().items, 0);
    }

    #[test]
    fn a_writer_stays_a_reader_although_the_feed_is_faster() {
        let mut table = Table::new(100);
        let one = Arc::new(Outbox::default());
        table.add(1, Arc::clone(&one), &Wanted { mode: Mode::Default, is_no_loop: true });
        table.register(1, following(7), b"following:7");
        table.set_writing(1, true);
        table.invalidate_readers(following(7), AT);
        table.written_by(1, AT);
        table.set_writing(1, false);
        let Pending::Keys(mut keys) = one.take() else { panic!("not everything") };
        table.drop_own(1, &mut keys);
        assert!(keys.is_empty());
        table.invalidate_readers(following(7), AT.next());
        assert_eq!(names(&one), ["following:7"]);
    }

    #[test]
    fn listeners_hear_of_their_prefixes() {
        let mut table = Table::new(100);
        let (all, some) = (Arc::new(Outbox::default()), Arc::new(Outbox::default()));
        let prefixed = |prefixes| Wanted { mode: Mode::Broadcast(prefixes), is_no_loop: false };
        let two = ["followers:", "following:1"].map(|prefix| prefix.as_bytes().into());
        table.add(1, Arc::clone(&all), &prefixed(Vec::new()));
        table.add(2, Arc::clone(&some), &prefixed(two.into()));
        for id in [1, 12, 2] {
            table.invalidate_listeners(following(id), AT);
        }
        assert_eq!(names(&all), ["following:1", "following:12", "following:2"]);
        assert_eq!(names(&some), ["following:1", "following:12"]);
        table.register(1, following(1), b"following:1");
        table.register(1, following(1), b"following:01");
        table.invalidate_readers(following(1), AT);
        assert_eq!(names(&all), ["following:01"], "a name that it would not hear of otherwise");
        table.invalidate_all();
        assert_eq!(names(&some), ["everything"], "its client may have read elsewhere");
    }

    #[test]
    fn only_clients_that_may_have_cached_something_drop_everything() {
        let mut table = Table::new(100);
        let (one, two) = (subscriber(&mut table, 1), subscriber(&mut table, 2));
        table.register(1, following(7), b"following:7");
        table.will_read(1);
        table.invalidate_all();
        assert_eq!(names(&one), ["everything"]);
        assert!(names(&two).is_empty());
        table.invalidate_all();
        assert!(names(&one).is_empty(), "it has read nothing since");
        assert_eq!(table.stats().items, 0);
    }
}
