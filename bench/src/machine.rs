//! Facts about the machine that figures depend on. No names of hosts, users or folders.

use std::fs;

use serde::{Deserialize, Serialize};

/// What a figure was measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub kernel: String,
}

impl Machine {
    /// Reads the facts from the kernel; what it does not tell becomes "unknown" or 0.
    pub fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let memory_kib = field(&text("/proc/meminfo"), "MemTotal").and_then(first_number).unwrap_or(0);
        let unknown = || "unknown".to_owned();
        let kernel = text("/proc/sys/kernel/osrelease");
        Self {
            cpu: field(&text("/proc/cpuinfo"), "model name").map_or_else(unknown, str::to_owned),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: (memory_kib as f64 / f64::from(1 << 20) * 10.0).round() / 10.0,
            kernel: if kernel.is_empty() { unknown() } else { kernel.trim().to_owned() },
        }
    }
}

/// The value of `name: value` in a file of the kernel.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, v)| v.trim())
}

/// The number that a value such as `12 kB` begins with.
pub fn first_number(value: &str) -> Option<u64> {
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_kernel_files() {
        let text = "Name:\tx\nVmHWM:\t  120 kB\nmodel name\t: Fast\n";
        assert_eq!(field(text, "VmHWM").and_then(first_number), Some(120));
        assert_eq!(field(text, "model name"), Some("Fast"));
        assert_eq!(field(text, "VmRSS"), None);
    }
}
