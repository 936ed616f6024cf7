//! What an operator should know now, and what to do about it, by the statistics of the store.

use crate::administration::Stat;

/// Something that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Warning {
    /// What is wrong.
    pub(super) title: String,
    /// What to do.
    pub(super) advice: &'static str,
}

/// A statistic whose value says that something is wrong.
struct Rule {
    stat: &'static str,
    /// The values above which it warns.
    above: f64,
    /// What is wrong; `#` stands for the value.
    title: &'static str,
    advice: &'static str,
}

#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule { stat: "kinfolk_store_failed", above: 0.0, title: "A thread of the store has failed",
        advice: "The process ends by itself; have a supervisor restart it, and look for the reason in its log." },
    Rule { stat: "kinfolk_read_only", above: 0.0, title: "Writes are refused since the storage failed",
        advice: "Check the disk and the log, then restart. Reads go on." },
    Rule { stat: "kinfolk_flush_stalled_seconds", above: 60.0, title: "Rows could not be flushed for # seconds",
        advice: "Usually the disk is full or failing: free some space. Nothing acknowledged is lost, but memory grows." },
    Rule { stat: "kinfolk_merge_stalled_seconds", above: 300.0, title: "Files could not be compacted for # seconds",
        advice: "Check the free space and the log. Reads become slower until compaction succeeds." },
    Rule { stat: "kinfolk_fan_out_lag_seconds", above: 10.0, title: "Inboxes are # seconds behind",
        advice: "Feeds are right all the same, but slower. If it grows, lower feed.fan_out_threshold." },
    Rule { stat: "kinfolk_repaired_total", above: 0.0, title: "# differences between derived data and edges were repaired since the start",
        advice: "This points at a bug or at damaged storage: run verify, keep the log, and report it." },
    Rule { stat: "kinfolk_unreadable_total", above: 0.0, title: "# rows or blocks could not be read",
        advice: "The disk may be failing: make a backup now, and restore it on another disk." },
    Rule { stat: "kinfolk_clock_ahead_seconds", above: 0.0, title: "The system's clock is # seconds ahead and ignored",
        advice: "Set the clock right. Until then, times are those of the store." },
    Rule { stat: "kinfolk_clock_behind_seconds", above: 60.0, title: "The system's clock is # seconds behind",
        advice: "Set the clock right. New times stay just after the newest one until it has caught up." },
    Rule { stat: "kinfolk_fleet_hosts_unreachable", above: 0.0, title: "# hosts can't be reached",
        advice: "Users of their shards get errors: check PostgreSQL there, or promote a standby." },
    Rule { stat: "kinfolk_fleet_shards_closed", above: 0.0, title: "# shards take no writes while they are moved",
        advice: "If this lasts, a move was interrupted: run kinfolk shards move again, or abort it." },
    Rule { stat: "kinfolk_fleet_full_logs", above: 0.0, title: "# shards refuse writes because their logs are full",
        advice: "Start processes that relay and project, or raise fleet.log_changes_max." },
    Rule { stat: "kinfolk_fleet_relay_late", above: 0.0, title: "100,000 changes or more are not in Kafka yet",
        advice: "Check the brokers and the relays. Writes go on meanwhile." },
    Rule { stat: "kinfolk_fleet_shards_without_relay", above: 0.0, title: "Nobody relays # shards",
        advice: "Start a process with the role relay." },
    Rule { stat: "kinfolk_fleet_changes_behind", above: 100_000.0, title: "The follower side of a host is # changes behind",
        advice: "Start more processes that project, or look for the reason in their logs." },
    Rule { stat: "kinfolk_fleet_clock_lead_seconds", above: 1.0, title: "The clock of this process is # seconds ahead of a host's",
        advice: "Set the clock right: the process is not ready until then." },
];

/// The warnings by these statistics.
pub(super) fn warnings(stats: &[Stat]) -> Vec<Warning> {
    let warning = |rule: &Rule| {
        let stat = stats.iter().find(|stat| stat.name == rule.stat && stat.value > rule.above)?;
        let value = super::markup::number(stat.value.round() as u64);
        Some(Warning { title: rule.title.replace('#', &value), advice: rule.advice })
    };
    RULES.iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::administration::gauge;

    #[test]
    fn a_statistic_above_its_bound_is_a_warning() {
        let stats = |value| [gauge("kinfolk_flush_stalled_seconds", "", value)];
        assert_eq!(warnings(&stats(60.0)), []);
        let late = warnings(&stats(1_234.0));
        assert_eq!(late.len(), 1);
        assert_eq!(late[0].title, "Rows could not be flushed for 1,234 seconds");
    }
}
