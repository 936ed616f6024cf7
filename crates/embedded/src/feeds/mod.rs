//! Home feeds: inboxes, what is still to be delivered to them, and the thread that does it.
//!
//! Inboxes are a projection in memory that can be dropped at any time: reading without one fills a new one from
//! the authors' posts. They hold posts that are delivered by push and nothing else; posts delivered by pull are found by
//! their authors. A page takes into account what is not delivered yet, so it is right however late deliveries are.

mod deliver;
mod deliveries;
mod inbox;
mod inboxes;
mod merge;
mod page;
mod port;
mod snapshot;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::feeds::{Delivery as Mode, PostKey};
use kinfolk_core::{EdgeKind, Error, Result, Sequence, Timestamp};
use parking_lot::Mutex;

use self::deliveries::{Deliveries, Delivery, Job};
use self::inbox::{Capacity, Key, pack};
use self::inboxes::Inboxes;
use crate::disk::format::{Content, Identity};
use crate::edges::Edges;
use crate::log::{Event, EventBody, LogReader};
use crate::posts::Posts;
use crate::projection::{Projection, Suspects};
use crate::runtime::folder::StoreFolder;
use crate::settings::Settings;
use crate::stats::Stats;

pub(crate) use deliver::run;
pub(crate) use page::{Wanted, page};
use snapshot::{forget_stored, load, save};

/// The feeds of all users.
pub(crate) struct Feeds {
    edges: Arc<Edges>,
    posts: Arc<Posts>,
    folder: StoreFolder,
    identity: Identity,
    settings: Settings,
    pub inboxes: Inboxes,
    pub deliveries: Deliveries,
    /// How often stored inboxes were dropped: what is being stored meanwhile must not take their place.
    dropped: Mutex<u64>,
}

impl Feeds {
    /// Feeds without inboxes.
    pub(crate) fn new(
        edges: Arc<Edges>,
        posts: Arc<Posts>,
        folder: StoreFolder,
        identity: Identity,
        settings: Settings,
    ) -> Self {
        let key_len = inbox::key_len(identity.ids);
        let inboxes = Inboxes::new(Capacity { key_len, entries: settings.inbox_entries.max(1) });
        let (deliveries, dropped) = (Deliveries::default(), Mutex::default());
        Self { edges, posts, folder, identity, settings, inboxes, deliveries, dropped }
    }

    /// Takes note of events whose rows are there, before they are visible.
    pub(crate) fn take_note(&self, events: &[Event]) {
        let Some(newest) = events.last().map(|event| event.position) else { return };
        // Inboxes first: a reader that finds nothing undelivered must not find an inbox that waits for it.
        if self.deliveries.are_too_many() {
            tracing::warn!(
                "too much is undelivered: inboxes are dropped, and filled again when their users come"
            );
            self.inboxes.clear();
            self.deliveries.clear();
        }
        let job =
            |event: &Event| Some(Delivery { position: event.position, at: event.at, job: self.job(event)? });
        let jobs: Vec<Delivery> = events.iter().filter_map(job).collect();
        self.deliveries.add(&jobs, newest);
    }

    /// What an event means for inboxes, if anything.
    fn job(&self, event: &Event) -> Option<Job> {
        match &event.body {
            EventBody::Followed(edge) | EventBody::Unfollowed(edge, _) => {
                let (follower, followee) = (edge.follower, edge.followee);
                if event.kind != EdgeKind::Follow || !self.inboxes.has(follower) {
                    return None;
                }
                let is_followed = matches!(event.body, EventBody::Followed(_));
                let job = if is_followed {
                    Job::BringIn { follower, followee }
                } else {
                    Job::TakeOut { follower, followee }
                };
                Some(job)
            }
            EventBody::Posted(posted) => {
                let (author, key) = (posted.post.author, posted.post.key());
                (posted.delivery == Mode::Push).then_some(Job::Push { author, key, after: None })
            }
            EventBody::PostDeleted { id, author, created_at } => {
                let key = PostKey { since: *created_at, id: *id };
                Some(Job::TakeBack { author: *author, key, after: None })
            }
            EventBody::Imported { .. } => {
                // It names no edges, and an inbox that is being filled may have read before it.
                self.inboxes.clear();
                None
            }
            EventBody::Comment(_) => None,
        }
    }

    /// Adds the state of feeds to the statistics.
    pub(crate) fn stats(&self, now: Timestamp, stats: Stats) -> Stats {
        let (fan_out_lag_events, oldest) = self.deliveries.lag();
        let lag_millis = oldest.map_or(0, |oldest| now.millis().saturating_sub(oldest.millis()));
        Stats {
            fan_out_lag_events,
            fan_out_lag: Duration::from_millis(lag_millis),
            ..self.inboxes.stats(stats)
        }
    }
}

impl Projection for Arc<Feeds> {
    fn content(&self) -> Content {
        Content::Edges
    }

    /// The log is not kept for inboxes: they catch up from their snapshot, or are filled when they are read.
    fn applied(&self) -> Result<Sequence> {
        Ok(Sequence(u64::MAX))
    }

    fn apply(&self, events: &[Event]) -> Result<()> {
        self.take_note(events);
        Ok(())
    }

    fn replay(&self, _: &[Event]) -> Result<()> {
        Ok(())
    }

    fn catch_up(&self, log: &LogReader, newest: Sequence) -> Result<()> {
        const EVENTS_AT_A_TIME: usize = 10_000;
        self.deliveries.add(&[], newest);
        let Identity { ids, epoch, .. } = self.identity;
        let Some((inboxes, position)) = load(self.folder.path(), ids, epoch)? else { return Ok(()) };
        inboxes.into_iter().for_each(|(of, inbox)| self.inboxes.restore(of, inbox));
        let mut after = position;
        while after < newest {
            match log.read(after, newest, EVENTS_AT_A_TIME) {
                Ok(events) => {
                    self.take_note(&events);
                    after = events.last().map_or(newest, |event| event.position);
                }
                Err(Error::PositionExpired { .. }) => {
                    self.inboxes.clear();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn compare(&self, _: Timestamp, suspects: &mut Suspects<'_>) -> Result<()> {
        verify::compare(self, suspects)
    }

    /// Inboxes were filled from what was wrong.
    fn source_repaired(&self) -> Result<()> {
        self.inboxes.clear();
        forget_stored(self)
    }

    fn close(&self) -> Result<()> {
        save(self)
    }
}

/// How many posts of any delivery are looked at for one that is pushed.
const LOOKED_AT_FOR_ONE: usize = 4;

/// The newest posts that are pushed, up to so many, of those that come from new to old; and the key from which these are
/// all, unless they are all from the beginning. Posts that are pulled are passed over, but not for ever.
fn newest_pushed(
    most: usize,
    mut next: impl FnMut() -> Result<Option<(PostKey, Mode)>>,
) -> Result<(Vec<Key>, Option<Key>)> {
    let most = most.max(1);
    let (mut newest, mut last, mut looked_at) = (Vec::new(), None, 0);
    while let Some((key, mode)) = next()? {
        if newest.len() == most || looked_at == most * LOOKED_AT_FOR_ONE {
            return Ok((newest, last));
        }
        looked_at += 1;
        last = Some(pack(key));
        if mode == Mode::Push {
            newest.push(pack(key));
        }
    }
    Ok((newest, None))
}
