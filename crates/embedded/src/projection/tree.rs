//! Projections whose rows are in one LSM tree: its records are the truth, and its other rows follow from them. How these follow is said
//! by each room; how they are replayed, flushed, compared and reconciled is the same for all.

use std::fmt;
use std::sync::Arc;

use kinfolk_core::{Result, Sequence, Timestamp};
use lsm_tree::{UserKey, UserValue};

use super::{Difference, Fault, Findings, Projection, Reconcile, Suspects, Unreadable};
use crate::disk::backup_file::BackupPart;
use crate::disk::format::Content;
use crate::log::Event;
use crate::lsm::{IdempotencyKeys, KeyUse, LoggedKey, LsmTree, RowStorage, first_key};

/// How many rows are read together in a whole pass.
const ROWS_TOGETHER: usize = 4_096;

/// A projection in one tree.
pub(crate) trait TreeProjection: Send + Sync + Sized + 'static {
    /// See [`Projection::content`].
    const CONTENT: Content;
    /// What is said while all of it is compared.
    const STAGE: &'static str;
    /// What an idempotency key stands for, in words.
    const KEYED: &'static str;
    /// What is counted while rows are gone through in the order of their keys.
    type Tally: Default + Send;

    /// The tree.
    fn tree(&self) -> &LsmTree;

    /// The idempotency keys in it.
    fn keys(&self) -> &IdempotencyKeys;

    /// Applies an event that the tree lacks.
    fn apply_event(&self, event: &Event) -> Result<()>;

    /// Adds what seems to differ by a row, other than an idempotency key.
    fn examine(
        self: &Arc<Self>,
        row: &Row,
        tally: &mut Self::Tally,
        found: &mut Vec<Difference>,
    ) -> Result<()>;

    /// Adds what seems to differ by what was counted, when there are no more rows.
    fn finish_tally(self: &Arc<Self>, _tally: &mut Self::Tally, _found: &mut Vec<Difference>) -> Result<()> {
        Ok(())
    }

    /// The idempotency key that an event must have left.
    fn key_of(&self, event: &Event) -> Option<LoggedKey>;

    /// Whether the author of a key has what it stands for; `now` is not earlier than any event.
    fn is_sound(&self, key: &LoggedKey, used: KeyUse, now: Timestamp) -> Result<bool>;

    /// See [`Projection::back_up`].
    fn back_up(&self) -> Result<BackupPart>;

    /// See [`Projection::may_be_compacted`].
    fn may_be_compacted(&self) -> bool {
        true
    }
}

/// A row of a tree.
pub(crate) type Row = (UserKey, UserValue);

impl<P: TreeProjection> Projection for Arc<P> {
    fn content(&self) -> Content {
        P::CONTENT
    }

    fn applied(&self) -> Result<Sequence> {
        self.tree().applied()
    }

    fn apply(&self, events: &[Event]) -> Result<()> {
        let lacking = events.iter().filter(|event| event.position > self.tree().applied_at_open);
        lacking.into_iter().try_for_each(|event| self.apply_event(event))
    }

    fn rows(&self) -> Option<&dyn RowStorage> {
        Some(self.tree())
    }

    fn may_be_compacted(&self) -> bool {
        P::may_be_compacted(self)
    }

    fn compare(&self, now: Timestamp, suspects: &mut Suspects<'_>) -> Result<()> {
        let (mut pass, mut done) = (Pass::new(self), 0);
        loop {
            let mut findings = Findings::new(ROWS_TOGETHER, now);
            let is_complete = pass.step(&mut findings);
            if let Some(Unreadable { first, .. }) = findings.unreadable {
                return Err(first);
            }
            done += findings.rows as u64;
            suspects.step(P::STAGE, done);
            findings.suspected.into_iter().try_for_each(|suspected| suspects.add(suspected))?;
            if is_complete {
                return Ok(());
            }
        }
    }

    fn logged_key(&self, event: &Event) -> Option<Difference> {
        Some(Arc::new(KeyFault { of: Arc::clone(self), key: self.key_of(event)? }))
    }

    fn back_up(&self) -> Result<Option<BackupPart>> {
        P::back_up(self).map(Some)
    }

    fn reconcile(&self) -> Option<Box<dyn Reconcile>> {
        Some(Box::new(Pass::new(self)))
    }
}

/// Goes through all rows, again and again.
struct Pass<P: TreeProjection> {
    of: Arc<P>,
    from: Vec<u8>,
    tally: P::Tally,
}

impl<P: TreeProjection> Pass<P> {
    fn new(of: &Arc<P>) -> Self {
        Self { of: Arc::clone(of), from: first_key(), tally: P::Tally::default() }
    }

    fn examine(&mut self, row: &Row, now: Timestamp, found: &mut Vec<Difference>) -> Result<()> {
        if !self.of.keys().has(&row.0) {
            return self.of.examine(row, &mut self.tally, found);
        }
        let key = self.of.keys().read_key(self.of.tree(), &row.0)?;
        let suspected = KeyFault { of: Arc::clone(&self.of), key };
        found.extend(suspected.recheck(now)?);
        Ok(())
    }
}

impl<P: TreeProjection> Reconcile for Pass<P> {
    fn step(&mut self, findings: &mut Findings) -> bool {
        let mut part = self.of.tree().part(&self.from, findings.rows_max);
        let is_broken = findings.note_part(&mut part);
        let mut found = Vec::new();
        for row in &part.rows {
            let examined = self.examine(row, findings.now, &mut found);
            findings.readable(examined);
        }
        if is_broken {
            // Who knows how many rows were passed over.
            self.tally = P::Tally::default();
        }
        let is_complete = part.next.is_none();
        if is_complete {
            findings.readable(self.of.finish_tally(&mut self.tally, &mut found));
        }
        findings.suspected.extend(found);
        self.from = part.next.unwrap_or_else(first_key);
        is_complete
    }
}

/// An idempotency key that names something else than the log and the records.
struct KeyFault<P> {
    of: Arc<P>,
    key: LoggedKey,
}

impl<P: TreeProjection> KeyFault<P> {
    /// What should be stored under the key, if that is not what is.
    fn expected(&self, now: Timestamp) -> Result<Option<Option<KeyUse>>> {
        let is_sound = |used| self.of.is_sound(&self.key, used, now);
        self.of.keys().difference(self.of.tree(), &self.key, now, is_sound)
    }
}

impl<P: TreeProjection> Fault for KeyFault<P> {
    fn recheck(&self, now: Timestamp) -> Result<Option<Difference>> {
        let fault = || -> Difference { Arc::new(Self { of: Arc::clone(&self.of), key: self.key }) };
        Ok(self.expected(now)?.map(|_| fault()))
    }

    fn repair(&self, now: Timestamp) -> Result<()> {
        self.of.keys().mend(self.of.tree(), &self.key, self.expected(now)?);
        Ok(())
    }
}

impl<P: TreeProjection> fmt::Display for KeyFault<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (author, keyed) = (self.key.author, P::KEYED);
        match &self.key.logged {
            Some(KeyUse { id, .. }) => {
                write!(out, "an idempotency key of {author} does not name {keyed} {id} as the log does")
            }
            None => write!(out, "an idempotency key of {author} names no {keyed} of theirs"),
        }
    }
}
