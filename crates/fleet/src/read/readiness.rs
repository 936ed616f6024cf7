//! Whether this process should be sent requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_core::Result;

use crate::Fleet;

/// A process that is further ahead of a host's clock is not ready: its times become the earliest times of everybody's changes.
const CLOCK_LEAD_MAX: Duration = Duration::from_secs(1);

impl Fleet {
    /// Why this process is not ready, if there is a reason: its clock is ahead of a host's. A host that does not answer is no
    /// reason: the others are served.
    pub async fn not_ready(&self) -> Result<Option<String>> {
        let shared = Arc::clone(&self.shared);
        self.run(async move {
            for host in &shared.topology().hosts {
                let asked = Instant::now();
                let Ok(lead) = host.clock_lead(&*shared.clock).await else { continue };
                // The clock was read when the answer came. So late it was at most.
                let lead = lead.saturating_sub(asked.elapsed());
                if lead > CLOCK_LEAD_MAX {
                    let (name, lead) = (&host.name, lead.as_secs_f64());
                    return Ok(Some(format!(
                        "the clock of this process is {lead:.1} s ahead of host {name}'s: synchronize the clocks"
                    )));
                }
            }
            Ok(None)
        })
        .await
    }
}
