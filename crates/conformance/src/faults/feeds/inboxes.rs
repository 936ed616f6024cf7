//! Faults of inboxes that no page shows. An inbox is that of a feed with a fault, from the position on at which it was made.

use std::cmp::Reverse;

use kinfolk_core::feeds::{Inbox, PostKey};
use kinfolk_core::{Frontier, Id, Position};

use super::pages;
use crate::INBOX_ENTRIES;
use crate::faults::{Fault, Planted};
use crate::model::Model;
use crate::model::posts::higher;

impl Planted {
    /// The inbox of a user, which was made at a position if it was made.
    pub(crate) fn inbox_of(&self, model: &Model, of: Id, made_at: Option<Position>) -> Option<Inbox> {
        let made_at = match self.fault {
            Fault::InboxWithoutReading => made_at.or(Some(model.position())),
            Fault::ForgottenInboxIsNotMade if self.state().forgotten.contains(&of) => None,
            _ => made_at,
        }?;
        let known = match self.fault {
            Fault::InboxClaimsUndelivered => model.changes.len().saturating_sub(1),
            _ => model.changes.len(),
        };
        let until = |position: Position| {
            Model::replay(model.changes[..known].iter().filter(|change| change.position <= position).cloned())
        };
        let past = until(made_at);
        let inbox = self.hear_all(generated(&past, of), past, &until(model.position()), of);
        Some(self.shown(inbox, model.frontier()))
    }

    /// Whether an inbox that is to be forgotten is.
    pub(crate) fn forgets(&self, of: Id) -> bool {
        self.state().forgotten.insert(of);
        self.fault != Fault::ForgottenInboxStays
    }

    fn shown(&self, inbox: pages::Inbox, as_of: Frontier) -> Inbox {
        let pages::Inbox { mut entries, watermark, .. } = inbox;
        entries.sort();
        let newer = |key: PostKey| PostKey { id: higher(key.id, 1), ..key };
        let complete_from = watermark.map(|watermark| entries.last().copied().unwrap_or(newer(watermark)));
        match self.fault {
            Fault::InboxFromOldToNew => entries.sort_by_key(|&entry| Reverse(entry)),
            Fault::InboxSaysItIsWhole => return Inbox { entries, complete_from: None, as_of },
            _ => {}
        }
        Inbox { entries, complete_from, as_of }
    }
}

/// An inbox that is made of what there is.
fn generated(past: &Model, of: Id) -> pages::Inbox {
    let mut entries = past.pushed(of);
    let rest = entries.split_off(entries.len().min(INBOX_ENTRIES));
    pages::Inbox { entries, watermark: rest.first().copied(), followed: past.followees(of) }
}
