//! Whether this process should be sent requests.

use std::time::Duration;

use kinfolk_core::{Error, Result};

use super::staleness::{STALENESS_MAX, Sampled};
use crate::Fleet;

/// A process that is further ahead of a host's clock is not ready: its times become the earliest times of everybody's changes.
const CLOCK_LEAD_MAX: Duration = Duration::from_secs(1);

impl Fleet {
    /// Why this process is not ready, if there is a reason: its clock is ahead of a host's, or the follower side of a host is too
    /// late to be read. A host that does not answer is no reason: the others are served.
    ///
    /// Asks no host: the process knows from its latest sample of them, which it takes twice a second.
    pub async fn not_ready(&self) -> Result<Option<String>> {
        let mut samples = self.shared.staleness.watch();
        let sampled =
            samples.wait_for(|sampled| !sampled.hosts.is_empty()).await.map_err(|_| Error::Closed)?;
        Ok(reason(&sampled))
    }
}

fn reason(sampled: &Sampled) -> Option<String> {
    for (name, host) in &sampled.hosts {
        if let Some(lead) = host.clock_lead.filter(|&lead| lead > CLOCK_LEAD_MAX) {
            let lead = lead.as_secs_f64();
            return Some(format!(
                "the clock of this process is {lead:.1} s ahead of host {name}'s: synchronize the clocks"
            ));
        }
    }
    // While a host does not answer, the others may show all that there is.
    if sampled.hosts.values().any(|host| host.clock_lead.is_none()) {
        return None;
    }
    let (name, _) = sampled.hosts.iter().find(|(_, host)| !host.is_recent())?;
    let bound = STALENESS_MAX.as_secs();
    Some(format!(
        "the follower side of host {name} is over {bound} s behind: see that a process with the role project runs"
    ))
}
