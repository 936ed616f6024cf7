//! Whether this process should be sent requests.

use std::time::Duration;

use kinfolk_core::{Error, Result};
use tokio::time::timeout;

use super::staleness::{STALENESS_MAX, Sampled, SampledHost};
use crate::Fleet;

/// A process that is further ahead of a host's clock is not ready: its times become the earliest times of everybody's changes.
const CLOCK_LEAD_MAX: Duration = Duration::from_secs(1);

/// A process that starts waits so long for its filters at most: without them, checks only take longer.
const WARM_MAX: Duration = Duration::from_secs(10);

impl Fleet {
    /// Waits until this process can serve as well as others do: it has asked every host, knows that their follower sides are within the
    /// bound, and has its filters. What takes longer than usual is not waited for: other processes may have to wait for it, too.
    ///
    /// In a tokio runtime.
    pub async fn wait_until_warm(&self) -> Result<()> {
        self.first_sample().await?;
        let mut samples = self.shared.staleness.watch();
        let are_recent = |sampled: &Sampled| sampled.hosts.values().all(SampledHost::is_recent);
        // Not by its value, which locks the samples.
        let recent = async { samples.wait_for(are_recent).await.is_ok() };
        let (_, made) =
            tokio::join!(timeout(STALENESS_MAX, recent), timeout(WARM_MAX, self.shared.filters.made()));
        if made.is_err() {
            tracing::info!("not all filters are made yet: checks ask the hosts meanwhile");
        }
        Ok(())
    }

    async fn first_sample(&self) -> Result<Sampled> {
        let mut samples = self.shared.staleness.watch();
        let sampled = samples.wait_for(|sampled| !sampled.hosts.is_empty()).await;
        sampled.map(|sampled| sampled.clone()).map_err(|_| Error::Closed)
    }

    /// Why this process is not ready, if there is a reason: its clock is ahead of a host's. What all processes share is no reason, such
    /// as a host that does not answer or a late follower side: without any process, nothing would be served at all.
    ///
    /// Asks no host: the process knows from its latest sample of them, which it takes twice a second.
    pub async fn not_ready(&self) -> Result<Option<String>> {
        Ok(reason(&self.first_sample().await?))
    }
}

fn reason(sampled: &Sampled) -> Option<String> {
    let ahead = |lead: &Duration| *lead > CLOCK_LEAD_MAX;
    let leads = sampled.hosts.iter().filter_map(|(name, host)| Some((name, host.clock_lead.filter(ahead)?)));
    let (name, lead) = leads.max_by_key(|&(_, lead)| lead)?;
    let lead = lead.as_secs_f64();
    Some(format!("the clock of this process is {lead:.1} s ahead of host {name}'s: synchronize the clocks"))
}
