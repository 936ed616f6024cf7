//! The settings of a process: where Redis is, and what the process may ask of it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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

/// Without the password.
impl fmt::Debug for Redis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Redis").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
