//! The newest position of each shard that was acknowledged to this process. Its host has it: a connection that shows the shard
//! before it belongs to an old primary.
//!
//! Only what was committed counts. A row that was merely read may be on no standby, and a promotion takes it back: a process that
//! insisted on it would refuse the new primary.

use kinfolk_core::{Epoch, Frontier, Position, Sequence, Shard};
use parking_lot::RwLock;

use crate::postgres::{Failure, Host, unavailable};

/// Acknowledged positions of one epoch.
#[derive(Default)]
pub(crate) struct Acknowledged(RwLock<(Option<Epoch>, Frontier)>);

impl Acknowledged {
    /// Notes that a change was committed.
    pub(crate) fn note(&self, epoch: Epoch, position: Position) {
        let mut known = self.0.write();
        if known.0.is_some_and(|newer| newer.0 > epoch.0) {
            return;
        }
        if known.0 != Some(epoch) {
            *known = (Some(epoch), Frontier::default());
        }
        known.1.advance(position);
    }

    /// The newest position of a shard that was acknowledged in an epoch.
    pub(crate) fn get(&self, epoch: Epoch, shard: Shard) -> Sequence {
        let known = self.0.read();
        let newest = (known.0 == Some(epoch)).then(|| known.1.get(shard)).flatten();
        newest.unwrap_or_default()
    }

    /// The newest positions that were acknowledged in an epoch so far. What is read from now on shows them; what was read before may not.
    pub(crate) fn so_far(&self, epoch: Epoch) -> Frontier {
        let known = self.0.read();
        if known.0 == Some(epoch) { known.1.clone() } else { Frontier::default() }
    }

    /// Drops the connections to a host that shows a shard before what was acknowledged. Only for what was read while nobody could write
    /// to the shard, or what had to cover all that was acknowledged when it was asked for.
    pub(crate) fn require(&self, host: &Host, epoch: Epoch, shown: Position) -> Result<(), Failure> {
        Self::require_past(self.get(epoch, shown.shard), host, shown)
    }

    /// Drops the connections to a host that shows a shard before a position that was acknowledged when the host was asked.
    pub(crate) fn require_past(acknowledged: Sequence, host: &Host, shown: Position) -> Result<(), Failure> {
        if shown.sequence >= acknowledged {
            return Ok(());
        }
        tracing::warn!(host = host.name, %shown, "a connection belongs to an old primary and is dropped");
        host.drop_connections();
        Err(Failure::Transient(unavailable(&host.name, "the connection belongs to an old primary")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_starts_afresh_and_positions_never_go_back() {
        let known = Acknowledged::default();
        let (shard, other) = (Shard(3), Shard(4));
        assert_eq!(known.get(Epoch(1), shard), Sequence(0));
        known.note(Epoch(1), Sequence(9).on(shard));
        known.note(Epoch(1), Sequence(7).on(shard));
        assert_eq!((known.get(Epoch(1), shard), known.get(Epoch(1), other)), (Sequence(9), Sequence(0)));
        assert_eq!(known.so_far(Epoch(1)).get(shard), Some(Sequence(9)));
        assert_eq!((known.get(Epoch(2), shard), known.so_far(Epoch(2)).get(shard)), (Sequence(0), None));
        known.note(Epoch(2), Sequence(5).on(shard));
        assert_eq!((known.get(Epoch(1), shard), known.get(Epoch(2), shard)), (Sequence(0), Sequence(5)));
    }
}
