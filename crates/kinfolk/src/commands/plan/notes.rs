//! The notes of a plan: what the figures do not say by themselves, above all what will not fit.

use super::arithmetic::{SHARD_ROWS_MAX, SHARDS_MAX};
use super::output::{bytes, percent};
use super::{Planned, YEARS};
use crate::print::grouped;
use crate::settings::{Bytes, Value};

/// Those that apply, the most important first.
pub(super) fn notes(planned: &Planned) -> Vec<String> {
    let notes = [
        Some(filter(planned)),
        large_shards(planned),
        few_shards(planned),
        log(planned),
        fills(planned),
        without_redis(planned),
        growth(planned),
        Some(origins()),
    ];
    notes.into_iter().flatten().collect()
}

fn filter(planned: &Planned) -> String {
    let Planned { work, sizes, figures: [now, ..], .. } = planned;
    let (filter, edges) = (&now.filter, grouped(now.edges));
    if filter.shards_covered == sizes.shards {
        let all = bytes(filter.all);
        return format!("the filters of all {edges} edges fit: {all} in every api process");
    }
    format!(
        "the filters of {edges} edges do not fit: {} in every api process. {} cover {} of {} shards, {} of all checks; \
         the others go on to Redis and the shards",
        bytes(filter.all),
        Bytes(sizes.filter_memory).text(),
        filter.shards_covered,
        sizes.shards,
        percent(work.negative * filter.answered),
    )
}

fn large_shards(planned: &Planned) -> Option<String> {
    let [.., last] = &planned.figures;
    let mut years = YEARS.iter().zip(&planned.figures);
    let (years, figures) = years.find(|(_, figures)| figures.shard_rows > SHARD_ROWS_MAX)?;
    let when = if *years == 0 { "now".to_owned() } else { format!("in {years} y") };
    let shards = last.rows.div_ceil(SHARD_ROWS_MAX);
    let advice = match shards.next_power_of_two() {
        shards @ ..=SHARDS_MAX => format!("choose {shards} shards, which can't be changed later"),
        _ => format!("{} shards would be needed, and {SHARDS_MAX} are possible", grouped(shards)),
    };
    Some(format!(
        "{when} a shard has {} rows, more than about {}: {advice}",
        grouped(figures.shard_rows),
        grouped(SHARD_ROWS_MAX),
    ))
}

fn few_shards(planned: &Planned) -> Option<String> {
    let (shards, hosts) = (planned.sizes.shards, planned.figures[0].hosts.hosts);
    let text = || {
        let hosts = grouped(hosts);
        format!("{hosts} hosts can't share {shards} shards: a shard is on one host; plan with larger hosts")
    };
    (hosts > shards).then(text)
}

/// The log also has a limit by number, which is lower than one may expect.
fn log(planned: &Planned) -> Option<String> {
    let needed = planned.figures[0].disk.log_changes.div_ceil(planned.sizes.shards);
    let minutes =
        || planned.log_changes.saturating_mul(planned.sizes.shards) / planned.work.writes_per_second / 60;
    let text = || {
        format!(
            "fleet.log_changes of {} a shard keeps only {} min; the log above takes {} and a higher fleet.log_changes_max",
            grouped(planned.log_changes),
            grouped(minutes()),
            grouped(needed),
        )
    };
    (needed > planned.log_changes).then(text)
}

fn fills(planned: &Planned) -> Option<String> {
    let now = &planned.figures[0];
    let (needed, possible) = (now.redis.fills_per_second, planned.fills.saturating_mul(now.processes.api));
    let text = || {
        format!(
            "redis.fills of {} in {} api processes fills {} sets a second, and {} expire: raise redis.fills to {}, or \
             redis.keep",
            grouped(planned.fills),
            now.processes.api,
            grouped(possible),
            grouped(needed),
            grouped(needed.div_ceil(now.processes.api)),
        )
    };
    (needed > possible).then(text)
}

fn without_redis(planned: &Planned) -> Option<String> {
    let now = &planned.figures[0];
    let text = || {
        format!(
            "while Redis is away, {} checks/s reach the shards, which takes {} hosts; with {}, the rest gets 503",
            grouped(now.checks.passed),
            grouped(now.hosts.without_redis),
            grouped(now.hosts.hosts),
        )
    };
    (now.hosts.without_redis > now.hosts.hosts).then(text)
}

fn growth(planned: &Planned) -> Option<String> {
    let (needed, writes) = (planned.figures[0].new_edges_per_second, planned.work.writes_per_second);
    let text = || {
        let (needed, writes) = (grouped(needed), grouped(writes));
        format!("{writes} writes/s can't bring the growth, which is {needed} new edges a second")
    };
    (needed > writes).then(text)
}

fn origins() -> String {
    "measured: on two cores, with graphs that fit in memory; one api process. assumed: figures of machines and traffic that \
     were not measured at this size; most are flags, see 'kinfolk plan --help'. edges are taken to be spread evenly over shards, and shards over hosts"
        .to_owned()
}
