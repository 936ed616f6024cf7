//! The statistics of accounts that are read often.

use kinfolk_fleet::HotState;
use kinfolk_server::{Stat, gauge};

use super::layers::by_name;

/// How reads of hot accounts were answered, and what is kept of them.
pub(super) fn hot_stats(state: &HotState) -> Vec<Stat> {
    let help = "Reads of first pages of followers and of counts of hot accounts: kept in memory, shared with a statement of another, read for others, too, or passed to a statement of their own.";
    let verdicts = state.verdicts.map(|(verdict, count)| (verdict.name(), count));
    let mut stats: Vec<Stat> = by_name("kinfolk_fleet_hot_reads_total", "verdict", help, verdicts).collect();
    let help = "First pages and counts of hot accounts that this process keeps.";
    stats.push(gauge("kinfolk_fleet_hot_entries", help, state.entries as f64));
    stats
}
