//! `kinfolk serve` as users run it in production: with an API key, a rate limit and metrics. Stopped with its guard.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::process::run;

/// Ticks a second in `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;
/// A limit that is counted but never reached.
const LIMIT: &str = "100000000/s";

/// A running server.
#[derive(Debug)]
pub struct Server {
    running: Running,
    keys: PathBuf,
    pub key: String,
    pub http: SocketAddr,
    pub resp: SocketAddr,
}

impl Server {
    /// Serves the store in a folder on free ports.
    pub fn start(kinfolk: &Path, store: &Path) -> Result<Self> {
        Self::start_with(kinfolk, store, &[])
    }

    /// The same, with limits that are counted but never reached; they are named by their flags.
    pub fn start_with(kinfolk: &Path, store: &Path, limits: &[&str]) -> Result<Self> {
        let mut command = Command::new(kinfolk);
        // Some accounts of the generator follow more than the default allows.
        command.args(["serve", "--following-limit", "1000000000", "--data"]).arg(store);
        command.args(limits.iter().flat_map(|flag| [flag, LIMIT]));
        Self::launch(kinfolk, command, store.with_extension("keys.toml"))
    }

    /// Runs a command that serves, on free ports and with a key of its own in a file.
    pub fn launch(kinfolk: &Path, mut command: Command, keys: PathBuf) -> Result<Self> {
        let _ = fs::remove_file(&keys);
        let mut add = Command::new(kinfolk);
        add.args(["keys", "add", "bench", "--scopes", "read,write", "--limit", LIMIT, "--file"]).arg(&keys);
        let printed = run(&mut add)?;
        let key = printed.split(|c: char| c.is_whitespace() || c == '"').find(|word| word.starts_with("kf_"));
        let key = key.with_context(|| format!("no key in {printed:?}"))?.to_owned();
        command.args(["--resp", "127.0.0.1:0", "--auth-keys"]).arg(&keys);
        let running = Running::start(command)?;
        let (http, resp) = (running.address("http://")?, running.address("redis://")?);
        Ok(Self { running, keys, key, http, resp })
    }

    pub fn process(&self) -> u32 {
        self.running.child.id()
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        self.running.stop()
    }

    /// Ends it at once, as a crash does.
    pub fn kill(mut self) -> Result<()> {
        self.running.child.kill()?;
        self.running.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.keys);
    }
}

/// A process of `kinfolk serve` that is ready.
#[derive(Debug)]
pub struct Running {
    child: Child,
    ready: String,
}

impl Running {
    /// Runs a command that serves HTTP on a free port, and waits until it is ready.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .args(["--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("kinfolk serve did not start")?;
        let mut lines = BufReader::new(child.stderr.take().context("stderr is piped")?).lines();
        let mut said = String::new();
        let ready = lines.by_ref().map_while(Result::ok).find(|line| {
            said.push_str(line);
            line.contains("ready: ")
        });
        let Some(ready) = ready else {
            let _ = child.kill();
            bail!("kinfolk serve is not ready: {said}");
        };
        // Nobody reads its log, but it must be able to write it.
        thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(Self { child, ready })
    }

    /// Where it serves a protocol.
    fn address(&self, scheme: &str) -> Result<SocketAddr> {
        let address = self.ready.split_once(scheme).and_then(|(_, rest)| rest.split([' ', ',', '/']).next());
        let address = address.and_then(|address| address.parse().ok());
        address.with_context(|| format!("kinfolk serve has no {scheme}: {}", self.ready))
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(&mut self) -> Result<()> {
        run(Command::new("kill").arg(self.child.id().to_string()))?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { bail!("kinfolk serve ended with {status}") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processor time that a process has used, in seconds.
pub fn cpu_seconds(process: u32) -> f64 {
    ticks(process).iter().take(2).sum::<f64>() / TICKS
}

/// The same of a process with its children, those that have ended among them.
pub fn cpu_seconds_with_children(process: u32) -> f64 {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    ticks(process).iter().sum::<f64>() / TICKS + children.map(cpu_seconds).sum::<f64>()
}

/// What a process has used in user and kernel mode, then the same of its children that have ended.
fn ticks(process: u32) -> Vec<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything; what follows it is regular, from the third field on.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_the_processor() {
        let before = cpu_seconds(std::process::id());
        let started = std::time::Instant::now();
        while started.elapsed() < std::time::Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        let after = cpu_seconds(std::process::id());
        assert!(after > before && cpu_seconds_with_children(std::process::id()) >= after);
    }
}
