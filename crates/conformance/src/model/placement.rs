//! The shards of a model store. The model has one log; a store of several shards shows every change on the shard of what it is
//! about: of the follower, of the post, of the thread. Threads of different kinds with one id are on different shards.

use std::num::NonZeroU16;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{CommentChange, Parent};
use kinfolk_core::{Frontier, Id, Position, Sequence, Shard};

use crate::model::Model;

/// On which of some shards things are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) shards: NonZeroU16,
}

impl Placement {
    pub(crate) const ONE_SHARD: Self = Self { shards: NonZeroU16::MIN };

    /// The shard of a user or a post.
    pub(crate) fn of(self, id: Id) -> Shard {
        Shard::of(id, self.shards)
    }

    /// The shard of a thread: that of a post is beside it.
    pub(crate) fn of_thread(self, Parent { kind, id }: Parent) -> Shard {
        Shard((self.of(id).0 + u16::from(kind.number() - 1)) % self.shards)
    }

    fn of_change(self, change: &Change) -> Shard {
        match &change.body {
            ChangeBody::Followed { edge, .. } | ChangeBody::Unfollowed { edge, .. } => self.of(edge.follower),
            ChangeBody::Posted { post, .. } => self.of(post.id),
            ChangeBody::PostDeleted { id, .. } => self.of(*id),
            ChangeBody::Comment(
                CommentChange::Written { parent, .. }
                | CommentChange::Edited { parent, .. }
                | CommentChange::Withdrawn { parent, .. }
                | CommentChange::Locked { parent, .. },
            ) => self.of_thread(*parent),
            ChangeBody::Imported { .. } => unreachable!("the model imports nothing"),
        }
    }

    /// Where the log of every shard is when the model's is at a position.
    pub(crate) fn frontier(self, model: &Model, position: Position) -> Frontier {
        if self.shards == NonZeroU16::MIN {
            return position.into();
        }
        let mut sequences = vec![Sequence::START; usize::from(self.shards.get())];
        for change in model.changes.iter().take(position.sequence.0 as usize) {
            let sequence = &mut sequences[usize::from(self.of_change(change).0)];
            *sequence = sequence.next();
        }
        (0..).map(Shard).zip(sequences).map(|(shard, sequence)| sequence.on(shard)).collect()
    }

    /// Where the log of a shard is when the model's is at a position.
    pub(crate) fn position(self, model: &Model, position: Position, shard: Shard) -> Position {
        self.frontier(model, position).get(shard).unwrap_or_default().on(shard)
    }

    /// A change of the model as its shard shows it.
    pub(crate) fn place(self, model: &Model, change: Change) -> Change {
        let position = self.position(model, change.position, self.of_change(&change));
        Change { position, ..change }
    }
}
