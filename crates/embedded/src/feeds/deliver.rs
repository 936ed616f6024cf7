//! The thread that delivers: takes jobs in turns and brings their effect into inboxes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_core::graph::{Edge, EdgeList, ListKey, Side};
use kinfolk_core::{Clock, EdgeKind, Id, Result};

use super::Feeds;
use super::deliveries::{Delivery, Job};
use super::inbox::{pack, unpack};
use crate::runtime::signal;

/// How often inboxes are looked through for those that nobody reads, and stored.
const TIDY_EVERY: Duration = Duration::from_secs(60);
const SAVE_EVERY: Duration = Duration::from_secs(15 * 60);
/// How long to wait after rows could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Works until it is stopped.
pub(crate) fn run(feeds: &Feeds, clock: &Arc<dyn Clock>) {
    signal::lower_priority();
    let (mut tidied, mut saved) = (Instant::now(), Instant::now());
    let mut delivered_then = feeds.deliveries.delivered();
    while !feeds.deliveries.is_stopping() {
        if let Some(delivery) = feeds.deliveries.next(TIDY_EVERY) {
            take_turn(feeds, delivery);
        }
        if tidied.elapsed() >= TIDY_EVERY {
            tidied = Instant::now();
            let idle = feeds.settings.inbox_idle.as_millis() as u64;
            let bytes_max = usize::try_from(feeds.settings.inbox_bytes).unwrap_or(usize::MAX);
            feeds.inboxes.tidy(clock.now().millis().saturating_sub(idle), bytes_max);
        }
        let delivered = feeds.deliveries.delivered();
        if saved.elapsed() >= SAVE_EVERY && delivered > delivered_then {
            (saved, delivered_then) = (Instant::now(), delivered);
            if let Err(error) = super::save(feeds) {
                tracing::error!(%error, "inboxes could not be stored; after a crash they are filled again");
            }
        }
    }
}

fn take_turn(feeds: &Feeds, delivery: Delivery) {
    match work(feeds, delivery.job) {
        Ok(None) => feeds.deliveries.finish(&delivery),
        Ok(Some(job)) => feeds.deliveries.put_back(Delivery { job, ..delivery }),
        Err(error) => {
            tracing::error!(%error, "something could not be delivered; it is tried again");
            feeds.deliveries.put_back(delivery);
            feeds.deliveries.pause(RETRY_AFTER);
        }
    }
}

/// Does a part of a job; returns what is left of it.
fn work(feeds: &Feeds, job: Job) -> Result<Option<Job>> {
    match job {
        Job::Push { author, key, after } => {
            let packed = pack(key);
            let after = for_followers(feeds, author, after, |of| feeds.inboxes.push(of, &packed))?;
            Ok(after.map(|after| Job::Push { author, key, after: Some(after) }))
        }
        Job::TakeBack { author, key, after } => {
            let followers = feeds.edges.index.of(EdgeKind::Follow).counts(author).followers;
            // Looking through very many inboxes for one key is not worth it: readers see that the post is gone.
            if followers >= feeds.settings.fan_out_threshold {
                return Ok(None);
            }
            let packed = [pack(key)];
            let after = for_followers(feeds, author, after, |of| feeds.inboxes.remove(of, &packed))?;
            Ok(after.map(|after| Job::TakeBack { author, key, after: Some(after) }))
        }
        Job::BringIn { follower, followee } => {
            let mut posts = feeds.posts.by_author(followee, None);
            let (newest, from) =
                super::newest_pushed(feeds.settings.backfill_posts, || posts.next().transpose())?;
            feeds.inboxes.bring_in(follower, &newest, from.as_deref());
            Ok(None)
        }
        Job::TakeOut { follower, followee } => {
            take_out(feeds, follower, followee)?;
            Ok(None)
        }
    }
}

/// Visits some followers of an author; returns the key to go on after, unless these were the last.
fn for_followers(
    feeds: &Feeds,
    author: Id,
    after: Option<ListKey>,
    mut visit: impl FnMut(Id),
) -> Result<Option<ListKey>> {
    if feeds.inboxes.is_empty() {
        return Ok(None);
    }
    let list = EdgeList { kind: EdgeKind::Follow, side: Side::Followers, of: author };
    let most = feeds.settings.fan_out_turn.max(1);
    let followers = feeds.edges.rows.list_rows(list, after).take(most).collect::<Result<Vec<_>>>()?;
    followers.iter().for_each(|entry| visit(entry.id));
    Ok(followers.last().copied().filter(|_| followers.len() == most))
}

/// Takes the posts of an author out of an inbox, unless the user follows the author again.
fn take_out(feeds: &Feeds, follower: Id, followee: Id) -> Result<()> {
    // A job that was tried again may come after the one that brings the posts in again.
    if feeds.edges.index.of(EdgeKind::Follow).contains(Edge { follower, followee }) {
        return Ok(());
    }
    let Some(inbox) = feeds.inboxes.look(follower) else { return Ok(()) };
    let mut theirs = Vec::new();
    for key in inbox.keys().chunks(feeds.inboxes.capacity.key_len) {
        let Some(post) = unpack(feeds.identity.ids, key) else { continue };
        if feeds.posts.author_of(post.id)? == Some(followee) {
            theirs.push(key.to_vec());
        }
    }
    feeds.inboxes.remove(follower, &theirs);
    Ok(())
}
