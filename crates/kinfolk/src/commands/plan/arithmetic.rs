//! The arithmetic of a plan, without flags and output: a workload and sizes in, figures out. Counts are whole numbers, and one that
//! does not fit is an error; only shares are fractions.

use kinfolk_core::IdKind;

use super::measured::{
    CACHED_USER_BYTES, FILTER_AGE_SECONDS_MAX, FILTER_ANSWERS, FILTERED_CHECK_MICROS, PASSED_CHECK_MICROS,
    PROJECTED_PER_SECOND, RELAYED_PER_SECOND, RowBytes, STRICT_FILTER_BITS, cached_edge_bytes, filter_bytes,
    message_bytes,
};

/// A shard should have at most about so many rows, in both directions.
pub(super) const SHARD_ROWS_MAX: u64 = 2_000_000_000;

/// A fleet has at most so many shards: a token names those that its client has written to.
pub(super) const SHARDS_MAX: u64 = 512;

/// Two processes of each role, so that one may fail.
const PROCESSES_MIN: u64 = 2;

/// A Redis Cluster has at least so many masters.
const CLUSTER_MASTERS_MIN: u64 = 3;

const SECONDS_PER_YEAR: u64 = 365 * 24 * 60 * 60;

/// The numbers are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} would not fit in 64 bits; plan with smaller numbers")]
pub(super) struct TooLarge(&'static str);

type Result<T> = std::result::Result<T, TooLarge>;

/// What the fleet has to hold and to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    pub(super) ids: IdKind,
    pub(super) users: u64,
    /// Followees of a user on average.
    pub(super) following: u64,
    pub(super) checks_per_second: u64,
    pub(super) writes_per_second: u64,
    /// The highest rate is so many times the average.
    pub(super) peak: f64,
    /// The share of checks of edges that do not exist.
    pub(super) negative: f64,
    /// The share of users that are active, and cached.
    pub(super) active: f64,
    /// The share of checks in Redis that find the follower's set.
    pub(super) hits: f64,
    /// What is added to users and rates in a year.
    pub(super) growth: f64,
}

/// What the machines can do, and how the fleet is configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) shards: u64,
    pub(super) host: HostSize,
    pub(super) redis: RedisSize,
    pub(super) log_seconds: u64,
    pub(super) kafka_replication: u64,
    pub(super) filter_memory: u64,
    /// Of one process to one host.
    pub(super) connections: u64,
    pub(super) api_cores: u64,
    /// How busy the cores of api processes may be.
    pub(super) api_busy: f64,
}

/// One PostgreSQL server.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostSize {
    pub(super) disk: u64,
    /// The share of the disk that stays free.
    pub(super) free: f64,
    pub(super) memory: u64,
    pub(super) writes_per_second: u64,
    pub(super) checks_per_second: u64,
    pub(super) standbys: u64,
}

/// One node of Redis.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedisSize {
    pub(super) memory: u64,
    pub(super) checks_per_second: u64,
    pub(super) replicas: u64,
    pub(super) keep_seconds: u64,
}

/// The share of a host's memory that may hold the key index: the rest is for connections, sorting and the kernel.
pub(super) const INDEX_MEMORY: f64 = 0.75;

/// All figures of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) edges: u64,
    pub(super) rows: u64,
    pub(super) shard_rows: u64,
    pub(super) filter: FilterFigures,
    pub(super) checks: CheckFigures,
    pub(super) writes_peak: u64,
    pub(super) disk: DiskFigures,
    pub(super) hosts: HostFigures,
    pub(super) kafka: KafkaFigures,
    pub(super) redis: RedisFigures,
    pub(super) processes: ProcessFigures,
    /// Edges that growth adds in a second.
    pub(super) new_edges_per_second: u64,
}

/// Disk of the hosts, before standbys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DiskFigures {
    pub(super) edges: u64,
    pub(super) users: u64,
    pub(super) log_changes: u64,
    pub(super) log: u64,
    pub(super) data: u64,
    /// With the share that stays free.
    pub(super) needed: u64,
}

/// How many hosts each demand takes, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HostFigures {
    pub(super) for_disk: u64,
    pub(super) for_writes: u64,
    pub(super) for_checks: u64,
    /// The key index of active users.
    pub(super) index: u64,
    pub(super) for_memory: u64,
    pub(super) hosts: u64,
    pub(super) decided_by: &'static str,
    /// How many it would take if no check were answered by Redis.
    pub(super) without_redis: u64,
    pub(super) servers: u64,
    pub(super) data_per_host: u64,
    pub(super) disk_of_all: u64,
}

/// What Bloom filters take and cover. Every process that serves has the same ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FilterFigures {
    pub(super) all: u64,
    /// The same at one of a thousand, which Kinfolk does not use.
    pub(super) strict: u64,
    pub(super) shard: u64,
    pub(super) shards_covered: u64,
    /// The share of negative checks that it answers.
    pub(super) answered: f64,
    /// Edges that one process reads to make its filters again.
    pub(super) reads_per_second: u64,
}

/// Where checks end, at the peak, in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CheckFigures {
    pub(super) all: u64,
    pub(super) filter: u64,
    /// Those that the filters pass on.
    pub(super) passed: u64,
    pub(super) redis: u64,
    pub(super) shards: u64,
}

/// The topic of changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KafkaFigures {
    pub(super) bytes_per_second: u64,
    pub(super) disk: u64,
}

/// The following sets of active users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RedisFigures {
    pub(super) users: u64,
    pub(super) memory: u64,
    pub(super) for_memory: u64,
    pub(super) for_checks: u64,
    pub(super) masters: u64,
    pub(super) nodes: u64,
    pub(super) fills_per_second: u64,
}

/// Processes of Kinfolk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProcessFigures {
    pub(super) cores: f64,
    pub(super) api: u64,
    /// Memory of the filters of one, while one of them is replaced.
    pub(super) filter_memory: u64,
    pub(super) relay: u64,
    pub(super) project: u64,
    pub(super) connections_per_host: u64,
}

impl Workload {
    /// The workload after some years of growth.
    pub(super) fn after(self, years: i32) -> Result<Self> {
        let factor = (1.0 + self.growth).powi(years);
        Ok(Self {
            users: part(self.users, factor, "users")?,
            checks_per_second: part(self.checks_per_second, factor, "checks")?,
            writes_per_second: part(self.writes_per_second, factor, "writes")?,
            ..self
        })
    }
}

impl Figures {
    pub(super) fn of(work: &Workload, sizes: &Sizes) -> Result<Self> {
        let edges = times(work.users, work.following, "the number of edges")?;
        let rows = times(edges, 2, "the number of rows")?;
        let filter = FilterFigures::of(edges, sizes)?;
        let checks = CheckFigures::of(work, &filter)?;
        let writes_peak = part(work.writes_per_second, work.peak, "writes at the peak")?;
        let disk = DiskFigures::of(work, sizes, edges)?;
        Ok(Self {
            edges,
            rows,
            shard_rows: rows.div_ceil(sizes.shards),
            filter,
            checks,
            writes_peak,
            disk,
            hosts: HostFigures::of(work, sizes, (edges, writes_peak), &disk, &checks)?,
            kafka: KafkaFigures::of(work, sizes, writes_peak)?,
            redis: RedisFigures::of(work, sizes, checks.passed)?,
            processes: ProcessFigures::of(sizes, &checks, &filter, writes_peak)?,
            new_edges_per_second: part(edges, work.growth, "the growth")? / SECONDS_PER_YEAR,
        })
    }
}

impl DiskFigures {
    fn of(work: &Workload, sizes: &Sizes, edges: u64) -> Result<Self> {
        let bytes = RowBytes::of(work.ids);
        let what = "the disk";
        let log_changes = times(work.writes_per_second, sizes.log_seconds, "the log")?;
        let log = times(log_changes, bytes.change, what)?;
        let (edges, users) = (times(edges, bytes.edge(), what)?, times(work.users, bytes.counts(), what)?);
        let data = plus(plus(edges, users, what)?, log, what)?;
        let needed = part(data, 1.0 / (1.0 - sizes.host.free), what)?;
        Ok(Self { edges, users, log_changes, log, data, needed })
    }
}

impl HostFigures {
    fn of(
        work: &Workload,
        sizes: &Sizes,
        (edges, writes_peak): (u64, u64),
        disk: &DiskFigures,
        checks: &CheckFigures,
    ) -> Result<Self> {
        let host = &sizes.host;
        let index = part(times(edges, RowBytes::of(work.ids).key, "the index")?, work.active, "the index")?;
        let index_memory = part(host.memory, INDEX_MEMORY, "the memory")?.max(1);
        let for_disk = disk.needed.div_ceil(host.disk);
        let for_writes = writes_peak.div_ceil(host.writes_per_second);
        let for_checks = checks.shards.div_ceil(host.checks_per_second);
        let for_memory = index.div_ceil(index_memory);
        let demands =
            [("checks", for_checks), ("memory", for_memory), ("writes", for_writes), ("disk", for_disk)];
        // Of equal ones the last, so that a host that is enough for everything counts as decided by its disk.
        let (decided_by, hosts) = demands.into_iter().max_by_key(|(_, hosts)| *hosts).unwrap_or(("disk", 1));
        let hosts = hosts.max(1);
        let data_per_host = disk.data.div_ceil(hosts);
        let copies = plus(host.standbys, 1, "standbys")?;
        Ok(Self {
            for_disk,
            for_writes,
            for_checks,
            index,
            for_memory,
            hosts,
            decided_by,
            without_redis: checks.passed.div_ceil(host.checks_per_second),
            servers: times(hosts, copies, "servers")?,
            data_per_host,
            disk_of_all: times(disk.needed, copies, "the disk")?,
        })
    }
}

impl FilterFigures {
    fn of(edges: u64, sizes: &Sizes) -> Result<Self> {
        let shard_edges = edges.div_ceil(sizes.shards);
        let shard = filter_bytes(shard_edges);
        let shards_covered = (sizes.filter_memory / shard).min(sizes.shards);
        let covered = times(shards_covered, shard_edges, "the filters")?;
        Ok(Self {
            all: times(shard, sizes.shards, "the filters")?,
            strict: part(edges, STRICT_FILTER_BITS / 8.0, "the filters")?,
            shard,
            shards_covered,
            answered: shards_covered as f64 / sizes.shards as f64 * FILTER_ANSWERS,
            reads_per_second: covered / FILTER_AGE_SECONDS_MAX,
        })
    }
}

impl CheckFigures {
    fn of(work: &Workload, filter: &FilterFigures) -> Result<Self> {
        let all = part(work.checks_per_second, work.peak, "checks at the peak")?;
        let filtered = part(all, work.negative * filter.answered, "checks")?;
        let passed = all - filtered;
        let redis = part(passed, work.hits, "checks")?;
        Ok(Self { all, filter: filtered, passed, redis, shards: passed - redis })
    }
}

impl KafkaFigures {
    fn of(work: &Workload, sizes: &Sizes, writes_peak: u64) -> Result<Self> {
        let (bytes, what) = (message_bytes(work.ids), "the topic");
        let per_second = times(work.writes_per_second, bytes, what)?;
        Ok(Self {
            bytes_per_second: times(writes_peak, bytes, what)?,
            disk: times(times(per_second, sizes.log_seconds, what)?, sizes.kafka_replication, what)?,
        })
    }
}

impl RedisFigures {
    fn of(work: &Workload, sizes: &Sizes, checks: u64) -> Result<Self> {
        let (redis, what) = (&sizes.redis, "the memory of Redis");
        let users = part(work.users, work.active, what)?;
        let set = plus(times(work.following, cached_edge_bytes(work.ids), what)?, CACHED_USER_BYTES, what)?;
        let memory = times(users, set, what)?;
        let for_memory = memory.div_ceil(redis.memory);
        let for_checks = checks.div_ceil(redis.checks_per_second);
        let masters = match for_memory.max(for_checks) {
            0 | 1 => 1,
            several => several.max(CLUSTER_MASTERS_MIN),
        };
        let nodes = times(masters, plus(redis.replicas, 1, what)?, what)?;
        let fills_per_second = users.div_ceil(redis.keep_seconds);
        Ok(Self { users, memory, for_memory, for_checks, masters, nodes, fills_per_second })
    }
}

impl ProcessFigures {
    fn of(sizes: &Sizes, checks: &CheckFigures, filter: &FilterFigures, writes_peak: u64) -> Result<Self> {
        let micros =
            checks.filter as f64 * FILTERED_CHECK_MICROS + checks.passed as f64 * PASSED_CHECK_MICROS;
        let cores = micros / 1e6;
        let api = (cores / sizes.api_busy / sizes.api_cores as f64).ceil() as u64;
        let api = api.max(PROCESSES_MIN);
        let relay = writes_peak.div_ceil(RELAYED_PER_SECOND).max(PROCESSES_MIN);
        let project = writes_peak.div_ceil(PROJECTED_PER_SECOND).max(PROCESSES_MIN);
        let what = "connections";
        let processes = plus(plus(api, relay, what)?, project, what)?;
        let filters_at_most = if filter.shards_covered == 0 { 0 } else { filter.shards_covered + 1 };
        Ok(Self {
            cores,
            api,
            filter_memory: times(filters_at_most, filter.shard, "the filters")?,
            relay,
            project,
            connections_per_host: times(processes, sizes.connections, what)?,
        })
    }
}

fn times(number: u64, by: u64, what: &'static str) -> Result<u64> {
    number.checked_mul(by).ok_or(TooLarge(what))
}

fn plus(number: u64, and: u64, what: &'static str) -> Result<u64> {
    number.checked_add(and).ok_or(TooLarge(what))
}

/// A number times a factor, rounded.
fn part(number: u64, factor: f64, what: &'static str) -> Result<u64> {
    let product = (number as f64 * factor).round();
    // The first float that is too large for the type.
    if product < u64::MAX as f64 { Ok(product as u64) } else { Err(TooLarge(what)) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const DAY: u64 = 86_400;

    pub(crate) fn work(users: u64) -> Workload {
        Workload {
            ids: IdKind::Integer,
            users,
            following: 400,
            checks_per_second: users * 116 / 100_000,
            writes_per_second: users * 12 / 100_000,
            peak: 2.0,
            negative: 0.8,
            active: 0.1,
            hits: 0.95,
            growth: 0.3,
        }
    }

    pub(crate) fn sizes() -> Sizes {
        Sizes {
            shards: 256,
            host: HostSize {
                disk: 4 << 40,
                free: 0.3,
                memory: 256 * GIB,
                writes_per_second: 5_000,
                checks_per_second: 20_000,
                standbys: 1,
            },
            redis: RedisSize {
                memory: 32 * GIB,
                checks_per_second: 50_000,
                replicas: 1,
                keep_seconds: 3_600,
            },
            log_seconds: 7 * DAY,
            kafka_replication: 3,
            filter_memory: 16 * GIB,
            connections: 16,
            api_cores: 4,
            api_busy: 0.6,
        }
    }

    #[test]
    fn half_a_billion_users() {
        let figures = Figures::of(&work(500_000_000), &sizes()).unwrap();
        assert_eq!((figures.edges, figures.rows), (200_000_000_000, 400_000_000_000));
        assert_eq!(figures.shard_rows, 1_562_500_000);
        let DiskFigures { edges, users, log_changes, log, data, needed } = figures.disk;
        assert_eq!((edges, users), (87_400_000_000_000, 122_500_000_000));
        assert_eq!((log_changes, log), (36_288_000_000, 4_536_000_000_000));
        assert_eq!(data, edges + users + log);
        assert_eq!(needed, 131_512_142_857_143, "seven tenths of it are the data");
        let hosts = figures.hosts;
        assert_eq!((hosts.for_disk, hosts.for_writes, hosts.for_checks, hosts.for_memory), (30, 24, 3, 7));
        assert_eq!((hosts.hosts, hosts.decided_by, hosts.servers), (30, "disk", 60));
        assert_eq!(hosts.disk_of_all, 2 * needed);
        assert_eq!(figures.new_edges_per_second, 60_000_000_000 / SECONDS_PER_YEAR);
    }

    #[test]
    fn its_filters_do_not_fit() {
        let FilterFigures { all, strict, shards_covered, answered, .. } =
            Figures::of(&work(500_000_000), &sizes()).unwrap().filter;
        assert_eq!(all, 312_500_000_000, "1.5625 bytes an edge");
        assert_eq!(strict / 1_000_000_000, 359, "GB at one of a thousand");
        assert_eq!(shards_covered, 14);
        assert!((answered - 0.0545).abs() < 0.0001, "{answered}");
    }

    #[test]
    fn its_checks_end_somewhere() {
        let figures = Figures::of(&work(500_000_000), &sizes()).unwrap();
        let CheckFigures { all, filter, passed, redis, shards } = figures.checks;
        assert_eq!(all, 1_160_000);
        assert_eq!((filter + passed, redis + shards), (all, passed));
        assert_eq!((filter, shards), (50_598, 55_470));
        assert_eq!(figures.redis.memory, 180_000_000_000, "50 million sets of 3,600 bytes");
        assert_eq!((figures.redis.for_memory, figures.redis.for_checks), (6, 23));
        assert_eq!((figures.redis.masters, figures.redis.nodes), (23, 46));
        assert_eq!(figures.redis.fills_per_second, 13_889);
        assert_eq!(figures.processes.cores.ceil(), 16.0);
        assert_eq!((figures.processes.api, figures.processes.relay, figures.processes.project), (7, 2, 5));
        assert_eq!(figures.processes.connections_per_host, 14 * 16);
    }

    #[test]
    fn uuids_take_more() {
        let uuids = Workload { ids: IdKind::Uuid, ..work(500_000_000) };
        let figures = Figures::of(&uuids, &sizes()).unwrap();
        assert_eq!(figures.disk.edges, 115_000_000_000_000);
        assert_eq!(figures.redis.memory, 50_000_000 * (400 * 75 + 400));
        assert_eq!(figures.filter.all, 312_500_000_000, "filters hold hashes");
    }

    #[test]
    fn a_million_users_fit_on_one_host() {
        let figures = Figures::of(&work(1_000_000), &sizes()).unwrap();
        assert_eq!(figures.edges, 400_000_000);
        assert_eq!((figures.hosts.hosts, figures.hosts.decided_by, figures.hosts.servers), (1, "disk", 2));
        assert_eq!(figures.filter.shards_covered, 256, "all of them");
        assert!((figures.filter.answered - FILTER_ANSWERS).abs() < 1e-9);
        assert_eq!((figures.redis.masters, figures.redis.nodes), (1, 2));
        assert_eq!((figures.processes.api, figures.processes.relay, figures.processes.project), (2, 2, 2));
    }

    #[test]
    fn the_largest_demand_decides() {
        let mut sizes = sizes();
        sizes.host.writes_per_second = 100;
        let hosts = Figures::of(&work(500_000_000), &sizes).unwrap().hosts;
        assert_eq!((hosts.hosts, hosts.decided_by), (1_200, "writes"));
        let unread = Workload { hits: 0.0, active: 1.0, ..work(500_000_000) };
        let hosts = Figures::of(&unread, &self::sizes()).unwrap().hosts;
        assert_eq!((hosts.for_checks, hosts.without_redis), (56, 56));
        assert_eq!((hosts.hosts, hosts.decided_by), (65, "memory"));
    }

    #[test]
    fn no_memory_covers_nothing() {
        let sizes = Sizes { filter_memory: 0, ..sizes() };
        let figures = Figures::of(&work(1_000_000), &sizes).unwrap();
        assert_eq!((figures.filter.shards_covered, figures.checks.filter), (0, 0));
        assert_eq!(figures.processes.filter_memory, 0);
    }

    #[test]
    fn years_add_up() {
        let later = work(500_000_000).after(3).unwrap();
        assert_eq!((later.users, later.checks_per_second), (1_098_500_000, 1_274_260));
        let figures = Figures::of(&later, &sizes()).unwrap();
        assert_eq!(figures.edges, 439_400_000_000);
        assert!(figures.shard_rows > SHARD_ROWS_MAX);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut large = work(1_000_000);
        large.users = u64::MAX;
        assert_eq!(Figures::of(&large, &sizes()), Err(TooLarge("the number of edges")));
        assert_eq!(large.after(1).unwrap_err(), TooLarge("users"));
        let busy = Workload { writes_per_second: u64::MAX / 2, ..work(1_000_000) };
        assert_eq!(Figures::of(&busy, &sizes()), Err(TooLarge("writes at the peak")));
        let deep = Workload { users: u64::MAX / 500, ..work(1) };
        assert_eq!(Figures::of(&deep, &sizes()), Err(TooLarge("the number of rows")));
    }
}
