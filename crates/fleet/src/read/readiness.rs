//! Whether this process should be sent requests.

use std::time::Duration;

use kinfolk_core::{Error, Result};

use super::staleness::Sampled;
use crate::Fleet;

/// A process that is further ahead of a host's clock is not ready: its times become the earliest times of everybody's changes.
const CLOCK_LEAD_MAX: Duration = Duration::from_secs(1);

impl Fleet {
    /// Why this process is not ready, if there is a reason: its clock is ahead of a host's. What all processes share is no reason, such
    /// as a host that does not answer or a late follower side: without any process, nothing would be served at all.
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
    let ahead = |lead: &Duration| *lead > CLOCK_LEAD_MAX;
    let leads = sampled.hosts.iter().filter_map(|(name, host)| Some((name, host.clock_lead.filter(ahead)?)));
    let (name, lead) = leads.max_by_key(|&(_, lead)| lead)?;
    let lead = lead.as_secs_f64();
    Some(format!("the clock of this process is {lead:.1} s ahead of host {name}'s: synchronize the clocks"))
}
