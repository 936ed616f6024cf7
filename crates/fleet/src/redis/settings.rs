//! The settings of a process: where Redis is, and what the process may ask of it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kinfolk_core::{Error, Result};

/// Where the nodes of Redis are, and how a process uses them.
#[derive(Clone)]
pub struct Redis {
    /// The addresses of some nodes, `host:port`. The others are found through them.
    pub nodes: Vec<String>,
    /// The user to sign in as; without one, the default user.
    pub username: Option<String>,
    /// The password to sign in with, if one is needed.
    pub password: Option<String>,
    /// The file of the authorities whose certificates the nodes show, as PEM. With it, connections are encrypted.
    pub authorities: Option<PathBuf>,
    /// A check waits so long for a node, then the shard is asked.
    pub timeout: Duration,
    /// How long a set is kept.
    pub keep: Duration,
    /// How many sets this process reads from the shards in a second, at most.
    pub fills_per_second: u32,
}

impl Redis {
    /// The usual settings for some nodes.
    pub fn new(nodes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            nodes: nodes.into_iter().map(Into::into).collect(),
            username: None,
            password: None,
            authorities: None,
            timeout: Duration::from_millis(50),
            keep: Duration::from_secs(60 * 60),
            fills_per_second: 500,
        }
    }
}

impl Redis {
    /// Refuses settings that can't work.
    pub(super) fn require_valid(&self) -> Result<()> {
        let has_port = |node: &String| {
            node.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        let detail = match self.nodes.iter().find(|node| !has_port(node)) {
            Some(node) => format!("redis.nodes: {node} is not HOST:PORT"),
            None if self.username.is_some() && self.password.is_none() => {
                "redis.username needs redis.password".to_owned()
            }
            None if self.fills_per_second == 0 => "redis.fills must be 1 at least".to_owned(),
            None if self.timeout.is_zero() => "redis.timeout must be above 0".to_owned(),
            None if self.keep < Duration::from_secs(1) => "redis.keep must be 1 s at least".to_owned(),
            None => return Ok(()),
        };
        Err(Error::InvalidStore { detail })
    }
}

/// Without the password.
impl fmt::Debug for Redis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Redis").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let usual = Redis::new(["a:1", "[::1]:6379"]);
        assert!(usual.require_valid().is_ok());
        for node in ["a", ":1", "a:b", "a:70000", "redis://a"] {
            let refused = Redis::new([node]).require_valid().unwrap_err().to_string();
            assert!(refused.contains(node) && refused.contains("HOST:PORT"), "{refused}");
        }
        let hasty = Redis { timeout: Duration::ZERO, ..usual.clone() };
        let short = Redis { keep: Duration::from_millis(999), ..usual.clone() };
        let nameless = Redis { username: Some("me".to_owned()), ..usual };
        assert!([hasty, short, nameless].iter().all(|settings| settings.require_valid().is_err()));
    }
}
