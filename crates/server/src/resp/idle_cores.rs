//! How many cores of the machine are idle.

#[cfg(target_os = "linux")]
use std::fs;
use std::time::Instant;

/// The kernel counts time in hundredths of a second here, on every architecture.
#[cfg(target_os = "linux")]
const TICKS_PER_SECOND: f64 = 100.0;

/// Compares what the kernel counted with what it had counted before.
#[derive(Debug)]
pub(super) struct IdleCores {
    at: Instant,
    idle_seconds: Option<f64>,
}

impl IdleCores {
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), idle_seconds: idle_seconds() }
    }

    /// How many were idle on average since the last call. As many as anybody wants where the system does not say.
    pub(crate) fn since_last(&mut self) -> f64 {
        let now = Self::new();
        let took = (now.at - self.at).as_secs_f64();
        let before = std::mem::replace(self, now).idle_seconds;
        match (self.idle_seconds, before) {
            (Some(after), Some(before)) if took > 0.0 => (after - before) / took,
            _ => f64::INFINITY,
        }
    }
}

/// How long all cores were idle since the machine was started, added up.
#[cfg(target_os = "linux")]
fn idle_seconds() -> Option<f64> {
    parse_idle_ticks(&fs::read_to_string("/proc/stat").ok()?).map(|ticks| ticks as f64 / TICKS_PER_SECOND)
}

#[cfg(not(target_os = "linux"))]
fn idle_seconds() -> Option<f64> {
    None
}

/// Idle time, with the part of it in which somebody waited for a disk, and the time of low-priority work, which gives way, such as
/// the store's compactions: the fourth, fifth and second number of the first line.
#[cfg(target_os = "linux")]
fn parse_idle_ticks(stat: &str) -> Option<u64> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let numbers: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
    let [_user, low_priority, _system, idle, waiting, ..] = numbers[..] else { return None };
    Some(low_priority + idle + waiting)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_what_requests_could_use() {
        assert_eq!(parse_idle_ticks("cpu  10 2 3 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5\n"), Some(452));
        assert_eq!(parse_idle_ticks("cpu  10 2 3\n"), None);
        assert_eq!(parse_idle_ticks("intr 5\n"), None);
    }

    #[test]
    fn the_system_says_how_long_cores_were_idle() {
        assert!(idle_seconds().is_some());
        assert!(IdleCores::new().since_last() >= 0.0);
    }
}
