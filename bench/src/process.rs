//! Runs another program to its end and tells how long it took and how much memory it had at most.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::machine::{field, first_number};

const POLL_EVERY: Duration = Duration::from_millis(5);

/// What a finished program used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub elapsed: Duration,
    /// The largest resident memory, as the kernel keeps it; read every 5 ms, so the last 5 ms may be missing.
    pub memory_bytes_max: u64,
}

/// Runs a program, its output into a log file, which a failure quotes.
pub fn run_measured(mut command: Command, log: &Path) -> Result<Usage> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let program = command.get_program().display().to_string();
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut memory_bytes_max = 0;
    let status = loop {
        memory_bytes_max = memory_bytes_max.max(memory_bytes(child.id(), "VmHWM"));
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(POLL_EVERY),
        }
    };
    let elapsed = started.elapsed();
    if !status.success() {
        bail!("{program} failed ({status}): {}", tail(log));
    }
    Ok(Usage { elapsed, memory_bytes_max })
}

/// Runs a program and returns what it printed.
pub fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A memory figure of a process, such as `VmRSS`; 0 once it has ended.
pub fn memory_bytes(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    field(&status, name).and_then(first_number).unwrap_or(0) << 10
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(1_000)..]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_measured_and_its_failure_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut sleep = Command::new("sleep");
        sleep.arg("0.05");
        let usage = run_measured(sleep, &log).unwrap();
        assert!(usage.elapsed >= Duration::from_millis(50));
        assert!(usage.memory_bytes_max > 0);

        let mut failing = Command::new("sh");
        failing.args(["-c", "echo no room; exit 3"]);
        let error = run_measured(failing, &log).unwrap_err().to_string();
        assert!(error.contains("no room"), "{error}");
    }

    #[test]
    fn this_process_has_memory() {
        assert!(memory_bytes(std::process::id(), "VmRSS") > 0);
        assert_eq!(memory_bytes(std::process::id(), "VmNothing"), 0);
    }
}
