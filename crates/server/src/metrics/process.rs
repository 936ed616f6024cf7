//! Statistics of this process: memory, processor time, open files. Read from `/proc`; absent on systems without it.

use std::fs;

use crate::administration::{self, Stat, counter};

/// The unit of times in `/proc`. The kernel reports in hundredths of a second on every architecture that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// The statistics that Prometheus clients report of a process, by their usual names.
pub(super) fn stats() -> Vec<Stat> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let system = fs::read_to_string("/proc/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let open_files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
    let gauge = |name, help, value: Option<f64>| value.map(|value| administration::gauge(name, help, value));
    let help = "Processor time that was used, by the program and by the system for it.";
    let cpu_seconds = cpu_seconds(&stat).map(|value| counter("process_cpu_seconds_total", help, value));
    [
        gauge(
            "process_resident_memory_bytes",
            "Memory that the process has in use.",
            bytes(&status, "VmRSS:"),
        ),
        gauge(
            "process_virtual_memory_bytes",
            "Memory that the process has mapped.",
            bytes(&status, "VmSize:"),
        ),
        gauge("process_open_fds", "Files and sockets that are open.", open_files),
        gauge("process_max_fds", "Files and sockets that may be open.", max_open_files(&limits)),
        gauge("process_threads", "Threads of the process.", field(&status, "Threads:")),
        gauge("process_start_time_seconds", "When the process started.", start_time(&stat, &system)),
        cpu_seconds,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What this process uses, as far as the system says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub resident_bytes: Option<u64>,
    pub user_seconds: Option<f64>,
    pub system_seconds: Option<f64>,
    /// The memory of the machine.
    pub machine_bytes: Option<u64>,
}

/// What this process uses now.
pub(crate) fn usage() -> Usage {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Usage {
        resident_bytes: bytes(&status, "VmRSS:").map(|bytes| bytes as u64),
        user_seconds: stat_field(&stat, 11).map(|ticks| ticks / TICKS_PER_SECOND),
        system_seconds: stat_field(&stat, 12).map(|ticks| ticks / TICKS_PER_SECOND),
        machine_bytes: bytes(&memory, "MemTotal:").map(|bytes| bytes as u64),
    }
}

fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A field that the kernel gives in KiB.
fn bytes(text: &str, name: &str) -> Option<f64> {
    field(text, name).map(|kibibytes| kibibytes * 1_024.0)
}

/// "unlimited" is not a number.
fn max_open_files(limits: &str) -> Option<f64> {
    field(limits, "Max open files")
}

/// The fields of `/proc/self/stat` after the program's name, which may have spaces and brackets in it.
fn stat_field(stat: &str, after_name: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(after_name)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((stat_field(stat, 11)? + stat_field(stat, 12)?) / TICKS_PER_SECOND)
}

fn start_time(stat: &str, system: &str) -> Option<f64> {
    Some(field(system, "btime ")? + stat_field(stat, 19)? / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (odd ) name) S 1 77 77 0 -1 4194304 1 2 3 4 250 50 7 8 20 0 9 0 1000 12 13 14";

    #[test]
    fn fields_are_found_after_any_name() {
        assert_eq!(cpu_seconds(STAT), Some(3.0));
        assert_eq!(start_time(STAT, "cpu 1 2\nbtime 1794729600\n"), Some(1_794_729_610.0));
        assert_eq!(bytes("VmSize:\t 2 kB\nVmRSS:\t     3 kB\n", "VmRSS:"), Some(3_072.0));
        assert_eq!(
            max_open_files("Limit  Soft Hard\nMax open files    1024    4096  files\n"),
            Some(1_024.0)
        );
        assert_eq!(max_open_files("Max open files   unlimited unlimited files\n"), None);
        assert_eq!(cpu_seconds(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_usage_of_this_process_is_known() {
        let usage = usage();
        assert!(usage.resident_bytes.unwrap() > 100_000);
        assert!(usage.machine_bytes > usage.resident_bytes);
        assert!(usage.user_seconds.is_some() && usage.system_seconds.is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_figures() {
        let stats = stats();
        let value = |name| stats.iter().find(|stat| stat.name == name).unwrap().value;
        assert!(value("process_resident_memory_bytes") > 1e5);
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_start_time_seconds") > 1.6e9);
        assert!(value("process_cpu_seconds_total") >= 0.0);
    }
}
