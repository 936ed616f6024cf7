//! The lines of a plan: what each figure is called, and how it was computed.

use super::Planned;
use super::arithmetic::{INDEX_MEMORY, SHARD_ROWS_MAX};
use super::measured::{
    CACHED_USER_BYTES, FILTER_AGE_SECONDS_MAX, FILTER_ANSWERS, FILTERED_CHECK_MICROS, PASSED_CHECK_MICROS,
    PROJECTED_PER_SECOND, RELAYED_PER_SECOND, RowBytes, STRICT_FILTER_BITS, cached_edge_bytes, message_bytes,
};
use super::output::{Amount, Basis, Line, Section, bytes, percent};
use crate::print::grouped;
use crate::settings::{Bytes, Span, Value};

use Amount::{BytesPerSecond, Cores, Count, PerSecond, Share};
use Basis::{Assumed, Exact, Measured};

/// All sections, in the order in which one figure builds on another.
pub(super) fn sections(planned: &Planned) -> Vec<Section> {
    let section = |name, lines| Section { name, lines };
    vec![
        section("graph", graph(planned)),
        section("filters, the same in every api process", filters(planned)),
        section("checks a second, at the peak", checks(planned)),
        section("postgresql", disk(planned).into_iter().chain(hosts(planned)).collect()),
        section("kafka", kafka(planned)),
        section("redis", redis(planned)),
        section("processes", processes(planned)),
    ]
}

fn line(name: &'static str, value: Amount, basis: Basis, formula: impl Into<String>) -> Line {
    Line { name, value, basis, formula: formula.into() }
}

fn graph(planned: &Planned) -> Vec<Line> {
    let Planned { work, sizes, figures: [now, ..], .. } = planned;
    let growth = format!(
        "edges × {} ÷ a year; the other {} writes/s come and go",
        percent(work.growth),
        grouped(work.writes_per_second.saturating_sub(now.new_edges_per_second)),
    );
    vec![
        line(
            "edges",
            Count(now.edges),
            Exact,
            format!("{} users × {}", grouped(work.users), grouped(work.following)),
        ),
        line("rows", Count(now.rows), Exact, "edges × 2: at the follower and at the followee"),
        line(
            "logical shards",
            Count(sizes.shards),
            Exact,
            "--shards: 512 at most, fixed when the fleet is made",
        ),
        line(
            "rows a shard",
            Count(now.shard_rows),
            Exact,
            format!("rows ÷ shards; about {} at most", grouped(SHARD_ROWS_MAX)),
        ),
        line("new edges", PerSecond(now.new_edges_per_second), Assumed, growth),
    ]
}

fn filters(planned: &Planned) -> Vec<Line> {
    let Planned { sizes, figures: [now, ..], .. } = planned;
    let filter = &now.filter;
    vec![
        line(
            "filters of all edges",
            Amount::Bytes(filter.all),
            Exact,
            "edges × 1.25 (room to grow) × 10 bits",
        ),
        line(
            "the same at 0.1 %",
            Amount::Bytes(filter.strict),
            Exact,
            format!("edges × {STRICT_FILTER_BITS:.1} bits, to compare: Kinfolk lets up to 1 % through"),
        ),
        line(
            "shards covered",
            Count(filter.shards_covered),
            Exact,
            format!(
                "of {}: {} (--filter-memory) ÷ {} a shard",
                sizes.shards,
                Bytes(sizes.filter_memory).text(),
                bytes(filter.shard)
            ),
        ),
        line(
            "negative checks answered",
            Share(filter.answered),
            Measured,
            format!("shards covered ÷ shards × {}", percent(FILTER_ANSWERS)),
        ),
        line(
            "edges read by a process",
            PerSecond(filter.reads_per_second),
            Exact,
            format!(
                "edges covered ÷ {} h, after which filters are made again",
                FILTER_AGE_SECONDS_MAX / 3_600
            ),
        ),
    ]
}

fn checks(planned: &Planned) -> Vec<Line> {
    let Planned { work, figures: [now, ..], .. } = planned;
    let checks = &now.checks;
    vec![
        line(
            "all",
            PerSecond(checks.all),
            Exact,
            format!("{} × {}", grouped(work.checks_per_second), work.peak),
        ),
        line(
            "end in the filter",
            PerSecond(checks.filter),
            Assumed,
            format!("all × {} negative × {} answered", percent(work.negative), percent(now.filter.answered)),
        ),
        line(
            "end in Redis",
            PerSecond(checks.redis),
            Assumed,
            format!("the others × {} --cache-hits", percent(work.hits)),
        ),
        line("reach the shards", PerSecond(checks.shards), Assumed, "what is left"),
    ]
}

fn disk(planned: &Planned) -> Vec<Line> {
    let Planned { work, sizes, figures: [now, ..], .. } = planned;
    let (disk, row) = (&now.disk, RowBytes::of(work.ids));
    vec![
        line(
            "edges on disk",
            Amount::Bytes(disk.edges),
            Measured,
            format!(
                "edges × {} bytes: following {}, followers {}, with indexes",
                row.edge(),
                row.following,
                row.followers
            ),
        ),
        line(
            "counts of users",
            Amount::Bytes(disk.users),
            Measured,
            format!("users × {} bytes", row.counts()),
        ),
        line(
            "change log",
            Amount::Bytes(disk.log),
            Measured,
            format!(
                "{} writes/s × {} × {} bytes",
                grouped(work.writes_per_second),
                span(sizes.log_seconds),
                row.change
            ),
        ),
        line(
            "disk needed",
            Amount::Bytes(disk.needed),
            Assumed,
            format!("{} of data ÷ (1 − {} free)", bytes(disk.data), percent(sizes.host.free)),
        ),
    ]
}

fn hosts(planned: &Planned) -> Vec<Line> {
    let Planned { work, sizes, figures: [now, ..], .. } = planned;
    let (hosts, host) = (&now.hosts, &sizes.host);
    let per_host = |what: &str, rate: u64| format!("{what} ÷ {} a host", grouped(rate));
    let writes = format!("{} writes/s at the peak", grouped(now.writes_peak));
    let index = format!(
        "{} of keys ({} active × edges × {} bytes) ÷ {} of {}",
        bytes(hosts.index),
        percent(work.active),
        RowBytes::of(work.ids).key,
        percent(INDEX_MEMORY),
        Bytes(host.memory).text()
    );
    vec![
        line(
            "hosts for disk",
            Count(hosts.for_disk),
            Assumed,
            format!("disk needed ÷ {} a host", Bytes(host.disk).text()),
        ),
        line("hosts for writes", Count(hosts.for_writes), Assumed, per_host(&writes, host.writes_per_second)),
        line(
            "hosts for checks",
            Count(hosts.for_checks),
            Assumed,
            per_host("checks that reach the shards", host.checks_per_second),
        ),
        line("hosts for memory", Count(hosts.for_memory), Assumed, index),
        line(
            "hosts",
            Count(hosts.hosts),
            Assumed,
            format!("the largest of these: {} decides", hosts.decided_by),
        ),
        line("servers", Count(hosts.servers), Assumed, format!("hosts × (1 + {} standbys)", host.standbys)),
        line("data a host", Amount::Bytes(hosts.data_per_host), Assumed, "data ÷ hosts"),
        line(
            "disk of all servers",
            Amount::Bytes(hosts.disk_of_all),
            Assumed,
            "disk needed × servers ÷ hosts",
        ),
        line(
            "connections a host",
            Count(now.processes.connections_per_host),
            Assumed,
            format!("{} for each process below, at most", sizes.connections),
        ),
    ]
}

fn kafka(planned: &Planned) -> Vec<Line> {
    let Planned { work, sizes, figures: [now, ..], .. } = planned;
    vec![
        line("partitions", Count(sizes.shards), Exact, "one for each logical shard"),
        line(
            "messages",
            PerSecond(now.writes_peak),
            Exact,
            format!("{} writes/s × {}", grouped(work.writes_per_second), work.peak),
        ),
        line(
            "bytes",
            BytesPerSecond(now.kafka.bytes_per_second),
            Measured,
            format!("messages × {} bytes, before lz4", message_bytes(work.ids)),
        ),
        line(
            "disk of all brokers",
            Amount::Bytes(now.kafka.disk),
            Measured,
            format!(
                "average bytes/s × {} × {} replicas; retention.ms is yours",
                span(sizes.log_seconds),
                sizes.kafka_replication
            ),
        ),
    ]
}

fn redis(planned: &Planned) -> Vec<Line> {
    let Planned { work, sizes, figures: [now, ..], .. } = planned;
    let (redis, size) = (&now.redis, &sizes.redis);
    let memory = format!(
        "users × {} active × ({} × {} + {CACHED_USER_BYTES} bytes)",
        percent(work.active),
        work.following,
        cached_edge_bytes(work.ids)
    );
    let masters = format!(
        "the larger of {} for memory ({}) and {} for checks ({}/s)",
        redis.for_memory,
        Bytes(size.memory).text(),
        redis.for_checks,
        grouped(size.checks_per_second)
    );
    vec![
        line("memory of sets", Amount::Bytes(redis.memory), Assumed, memory),
        line("masters", Count(redis.masters), Assumed, masters),
        line("nodes", Count(redis.nodes), Assumed, format!("masters × (1 + {} replicas)", size.replicas)),
        line(
            "fills",
            PerSecond(redis.fills_per_second),
            Assumed,
            format!("{} sets ÷ {} (redis.keep)", grouped(redis.users), span(size.keep_seconds)),
        ),
    ]
}

fn processes(planned: &Planned) -> Vec<Line> {
    let Planned { sizes, figures: [now, ..], .. } = planned;
    let processes = &now.processes;
    vec![
        line(
            "api cores busy",
            Cores(processes.cores),
            Assumed,
            format!(
                "{FILTERED_CHECK_MICROS} µs a check that ends in the filter, {PASSED_CHECK_MICROS} µs any other (RESP, pipelined)"
            ),
        ),
        line(
            "api processes",
            Count(processes.api),
            Assumed,
            format!("cores ÷ {} busy ÷ {} cores each; 2 at least", percent(sizes.api_busy), sizes.api_cores),
        ),
        line(
            "filter memory of each",
            Amount::Bytes(processes.filter_memory),
            Exact,
            "shards covered and one more, while a filter is replaced",
        ),
        line(
            "relay processes",
            Count(processes.relay),
            Measured,
            format!("messages ÷ {}/s; 2 at least", grouped(RELAYED_PER_SECOND)),
        ),
        line(
            "project processes",
            Count(processes.project),
            Measured,
            format!("messages ÷ {}/s; 2 at least", grouped(PROJECTED_PER_SECOND)),
        ),
    ]
}

fn span(seconds: u64) -> String {
    Span(std::time::Duration::from_secs(seconds)).text()
}
