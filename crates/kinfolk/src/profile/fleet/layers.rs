//! The statistics of the layers of checks.

use kinfolk_fleet::{CacheState, FilterState, LayerStates};
use kinfolk_server::{Stat, counter, gauge};

/// What the layers have done so far.
pub(super) fn layer_stats(states: &LayerStates) -> Vec<Stat> {
    let mut stats = states.filters.as_ref().map(filter_stats).unwrap_or_default();
    stats.extend(states.cache.as_ref().map(cache_stats).unwrap_or_default());
    let help = "Checks that came to the shards, by what they said: yes, no, or failed.";
    stats.extend(by_name(
        "kinfolk_fleet_shard_checks_total",
        "verdict",
        help,
        states.shards.map(|(verdict, count)| (verdict.name(), count)),
    ));
    stats
}

fn filter_stats(state: &FilterState) -> Vec<Stat> {
    let help = "Checks by what the filter of the shard said: no, perhaps, uncovered or behind. All but no ask the next layer.";
    let verdicts = state.verdicts.map(|(verdict, count)| (verdict.name(), count));
    let mut stats: Vec<Stat> =
        by_name("kinfolk_fleet_filter_checks_total", "verdict", help, verdicts).collect();
    stats.push(gauge(
        "kinfolk_fleet_filter_shards",
        "Shards that have a filter in this process.",
        state.shards as f64,
    ));
    stats.push(gauge(
        "kinfolk_fleet_filter_bytes",
        "Memory of the filters of this process.",
        state.bytes as f64,
    ));
    let help = "Filters that were found to deny an edge that exists, and were made again.";
    stats.push(counter("kinfolk_fleet_filters_damaged_total", help, state.damaged as f64));
    stats
}

fn cache_stats(state: &CacheState) -> Vec<Stat> {
    let help = "Checks by what the cache said: yes and no are answers; all others ask the shard, and are the reason.";
    let verdicts = state.verdicts.map(|(verdict, count)| (verdict.name(), count));
    let mut stats: Vec<Stat> =
        by_name("kinfolk_fleet_cache_checks_total", "verdict", help, verdicts).collect();
    let help = "Following sets that this process was asked to fill, by what became of them.";
    let fills = state.fills.map(|(outcome, count)| (outcome.name(), count));
    stats.extend(by_name("kinfolk_fleet_cache_fills_total", "outcome", help, fills));
    let help = "Watermarks that were not there when a set was filled: the first set of each tag, and whatever Redis has lost.";
    stats.push(counter("kinfolk_fleet_cache_generations_total", help, state.generations as f64));
    let help = "Changes that the watermark that is furthest behind lacks, in a process that feeds the cache.";
    stats.push(gauge("kinfolk_fleet_cache_behind", help, state.changes_behind as f64));
    let help = "Tags whose nodes did not answer when the feed of this process last looked.";
    stats.push(gauge("kinfolk_fleet_cache_tags_unknown", help, state.tags_unknown as f64));
    let help = "Tags that were given up because they were too far behind.";
    stats.push(counter("kinfolk_fleet_cache_tags_given_up_total", help, state.tags_given_up as f64));
    stats.push(gauge("kinfolk_fleet_cache_nodes", "Nodes of Redis that serve slots.", state.nodes as f64));
    let help = "Nodes of Redis that this process leaves out, because they have failed.";
    stats.push(gauge("kinfolk_fleet_cache_nodes_left_out", help, state.nodes_left_out as f64));
    stats
}

/// A counter for each name.
pub(super) fn by_name<const N: usize>(
    metric: &'static str,
    label: &'static str,
    help: &'static str,
    counts: [(&'static str, u64); N],
) -> impl Iterator<Item = Stat> {
    counts.into_iter().map(move |(name, count)| Stat {
        of: Some((label, name.to_owned())),
        ..counter(metric, help, count as f64)
    })
}
