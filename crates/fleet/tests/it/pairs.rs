//! PostgreSQL servers of one test, which may be killed and stopped: alone, or with a synchronous standby.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::deployments::{server_number, signal, stack};
use crate::kafka::new_name;

/// The processes of a server, its first one before the others.
fn processes(first: i64) -> Vec<i64> {
    let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
    let children = children.unwrap_or_default();
    std::iter::once(first).chain(children.split_whitespace().map(|child| child.parse().unwrap())).collect()
}

/// Ends all processes of a server at once, as a machine that loses its power does.
fn kill(first: i64) {
    processes(first).into_iter().for_each(|process| signal(process, Signal::KILL));
    // A server whose old process is still known can't be started again.
    while Path::new("/proc").join(first.to_string()).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that are stopped until this is dropped.
pub struct Stopped(Vec<i64>);

impl Stopped {
    fn new(processes: Vec<i64>) -> Self {
        processes.iter().for_each(|&process| signal(process, Signal::STOP));
        Self(processes)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.iter().for_each(|&process| signal(process, Signal::CONT));
    }
}

/// A server, until it is dropped.
pub struct Server {
    folder: PathBuf,
    facts: BTreeMap<String, String>,
}

impl Server {
    pub fn start(settings: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("fleet-server-{}", new_name()));
        let facts = stack("postgres", "start", &folder, settings);
        Self { folder, facts }
    }

    pub fn url(&self) -> &str {
        &self.facts["DATABASE_URL"]
    }

    pub fn kill(&self) {
        kill(self.facts["POSTGRES_PID"].parse().unwrap());
    }

    /// Starts it again, on its port and its data.
    pub fn restart(&mut self) {
        self.facts = stack("postgres", "restart", &self.folder, &[]);
    }

    /// Copies its data while it runs, as an operator does.
    pub fn back_up(&self, name: &str) {
        stack("postgres", "backup", &self.folder, &[name]);
    }

    /// Replaces its data by a copy.
    pub fn restore(&mut self, name: &str) {
        self.facts = stack("postgres", "restore", &self.folder, &[name]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stack("postgres", "stop", &self.folder, &[]);
    }
}

/// A primary and its synchronous standby, until they are dropped.
pub struct Pair {
    folder: PathBuf,
    facts: BTreeMap<String, String>,
}

impl Pair {
    pub fn start(settings: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("fleet-pair-{}", new_name()));
        let facts = stack("standby", "start", &folder, settings);
        Self { folder, facts }
    }

    /// The primary of this moment.
    pub fn primary(&self) -> &str {
        &self.facts["DATABASE_URL"]
    }

    pub fn standby(&self) -> &str {
        &self.facts["STANDBY_URL"]
    }

    /// Names both, and asks for the one that takes writes.
    pub fn url(&self) -> &str {
        &self.facts["PAIR_URL"]
    }

    fn process(&self, fact: &str) -> i64 {
        self.facts[fact].parse().unwrap()
    }

    /// Stops the standby's processes that receive and write: commits wait.
    pub fn stall(&self) -> Stopped {
        let receiver = "SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_wal_receiver";
        let receiver = loop {
            let receiver = server_number(self.standby(), receiver);
            if receiver > 0 {
                break receiver;
            }
        };
        Stopped::new(vec![self.process("STANDBY_PID"), receiver])
    }

    /// Stops all processes of the primary: its connections are silent.
    pub fn stop_primary(&self) -> Stopped {
        Stopped::new(processes(self.process("PRIMARY_PID")))
    }

    pub fn kill_primary(&self) {
        kill(self.process("PRIMARY_PID"));
    }

    pub fn kill_standby(&self) {
        kill(self.process("STANDBY_PID"));
    }

    /// Starts what was killed, on its port and its data.
    pub fn restart(&mut self) {
        self.facts = stack("standby", "restart", &self.folder, &[]);
    }

    /// How many commits wait for the standby.
    pub fn waiting(&self) -> i64 {
        let waiting = "SELECT count(*), pg_sleep(0.02) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        server_number(self.primary(), waiting)
    }

    /// Ends the primary as a crash does, and makes the standby the primary.
    pub fn promote(&mut self) {
        self.facts = stack("standby", "promote", &self.folder, &[]);
    }

    /// Makes the old primary the standby of the new one.
    pub fn rejoin(&mut self) {
        self.facts = stack("standby", "rejoin", &self.folder, &[]);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        stack("standby", "stop", &self.folder, &[]);
    }
}
