//! Follows the change log while there are subscribers, and invalidates what changed: the writes of all protocols and processes.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Epoch, Error, Frontier, Result, Store};
use tokio_util::sync::CancellationToken;

use super::Tracking;
use crate::service::Service;

/// How many changes are read at once.
const PAGE_LEN: usize = 1_000;
/// How long the feed rests when the log can't be read. Until it can, caches are dropped this often.
const REST: Duration = Duration::from_secs(1);

/// Runs the feed until `stop`.
pub(in super::super) async fn run<S: Store>(
    service: Arc<Service<S>>,
    tracking: Arc<Tracking>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let (service, tracking, stop) = (Arc::clone(&service), Arc::clone(&tracking), stop.clone());
        let feed = tokio::spawn({
            let tracking = Arc::clone(&tracking);
            async move { stop.run_until_cancelled(follow(&service, &tracking)).await }
        });
        if feed.await.is_err() {
            tracing::error!("the feed of client-side caches has panicked; it begins again");
            tracking.fail();
        }
    }
}

async fn follow<S: Store>(service: &Service<S>, tracking: &Tracking) {
    loop {
        tracking.subscribed().await;
        if let Err(error) = follow_log(service, tracking).await {
            tracing::warn!(%error, "the change log can't be followed; clients drop what they have cached");
            tracking.fail();
            tokio::time::sleep(REST).await;
        }
    }
}

/// Invalidates what changes from now on, as long as there are subscribers.
async fn follow_log<S: Store>(service: &Service<S>, tracking: &Tracking) -> Result<()> {
    let epoch = service.epoch();
    let mut applied = service.log_end().await?;
    tracking.begin(epoch, &applied);
    while tracking.has_subscribers() {
        applied = follow_page(service, tracking, epoch, &applied).await?;
    }
    tracking.end();
    Ok(())
}

async fn follow_page<S: Store>(
    service: &Service<S>,
    tracking: &Tracking,
    epoch: Epoch,
    after: &Frontier,
) -> Result<Frontier> {
    service.log_end_after(after).await?;
    let page = service.changed_since(after, PAGE_LEN).await?;
    if service.epoch() != epoch {
        return Err(Error::TokenFromOtherEpoch);
    }
    tracking.apply(&page.changes, &page.next);
    Ok(page.next)
}
