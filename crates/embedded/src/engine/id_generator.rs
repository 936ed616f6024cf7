//! Ids that the store makes for posts and comments: each higher than the one before, and in the order of time.
//!
//! Integers are milliseconds and 20 bits to count in, which reaches to the year 2248; UUIDs are of version 7. Where the
//! clock goes back, or more come than a millisecond has room for, counting goes on from the newest one.

use kinfolk_core::{Error, Id, IdGenerator, IdKind, Result, Timestamp};

use crate::disk::format;

/// How many bits of an integer count within a millisecond.
const COUNTING_BITS: u32 = 20;
const INTEGER_MAX: u64 = i64::MAX as u64;
/// Version 7 and the variant of RFC 9562, in their places.
const UUID_MARKS: u128 = 7 << 76 | 2 << 62;

/// Makes ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeOrderedIds {
    kind: IdKind,
    newest: Option<Id>,
}

/// Makes all ids that the store makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdGenerators {
    /// Of posts, of the deployment's kind.
    pub posts: TimeOrderedIds,
    /// Of comments: UUIDs.
    pub comments: TimeOrderedIds,
}

impl IdGenerators {
    /// Goes on after the newest ids that were made.
    pub(crate) fn new(kind: IdKind, post: Option<Id>, comment: Option<Id>) -> Self {
        Self { posts: TimeOrderedIds::new(kind, post), comments: TimeOrderedIds::new(IdKind::Uuid, comment) }
    }
}

impl TimeOrderedIds {
    /// Goes on after the newest id that was made.
    pub(crate) fn new(kind: IdKind, newest: Option<Id>) -> Self {
        Self { kind, newest }
    }

    /// The id to begin a millisecond with.
    fn first(&self, now: Timestamp) -> Result<Id> {
        Ok(match self.kind {
            IdKind::Integer => {
                let millis = now.millis().min(INTEGER_MAX >> COUNTING_BITS);
                Id::Integer(millis << COUNTING_BITS)
            }
            IdKind::Uuid => {
                // Half of the range is left to count in.
                let random = u128::from_le_bytes(format::random()?) >> 55;
                Id::Uuid(to_uuid(u128::from(now.millis()) << 74 | random))
            }
        })
    }
}

impl IdGenerator for TimeOrderedIds {
    fn next_id(&mut self, at: Timestamp, is_free: &dyn Fn(Id) -> Result<bool>) -> Result<Id> {
        let mut id = self.first(at)?;
        if let Some(newest) = self.newest.filter(|&newest| newest >= id) {
            id = following(newest)?;
        }
        while !is_free(id)? {
            id = following(id)?;
        }
        self.newest = Some(id);
        Ok(id)
    }
}

fn following(id: Id) -> Result<Id> {
    let following = match id {
        Id::Integer(value) => Some(value + 1).filter(|&value| value <= INTEGER_MAX).map(Id::Integer),
        Id::Uuid(value) => {
            from_uuid(value).checked_add(1).filter(|free| free >> 122 == 0).map(to_uuid).map(Id::Uuid)
        }
    };
    following.ok_or_else(|| Error::storage("there are no higher ids"))
}

/// Spreads 122 bits around version and variant: 48 of time, 12 and 62.
fn to_uuid(bits: u128) -> u128 {
    let (time, middle, low) = (bits >> 74, bits >> 62 & 0xfff, bits & ((1 << 62) - 1));
    time << 80 | UUID_MARKS | middle << 64 | low
}

fn from_uuid(uuid: u128) -> u128 {
    (uuid >> 80) << 74 | (uuid >> 64 & 0xfff) << 62 | uuid & ((1 << 62) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "it stands for a look into the store, which can fail")]
    fn free(_: Id) -> Result<bool> {
        Ok(true)
    }

    #[test]
    fn ids_rise_whatever_the_clock_does() {
        for kind in [IdKind::Integer, IdKind::Uuid] {
            let mut ids = TimeOrderedIds::new(kind, None);
            let mut before = ids.next_id(Timestamp::from_millis(5), &free).unwrap();
            for millis in [5, 5, 9, 2, 0, 9, 10, 1_790_000_000_000, 3] {
                let id = ids.next_id(Timestamp::from_millis(millis), &free).unwrap();
                assert!(id > before && kind.require(id).is_ok(), "{id} after {before}");
                before = id;
            }
            let again =
                TimeOrderedIds::new(kind, Some(before)).next_id(Timestamp::from_millis(1), &free).unwrap();
            assert!(again > before);
        }
    }

    #[test]
    fn ids_that_are_taken_are_passed_over() {
        let mut ids = TimeOrderedIds::new(IdKind::Integer, None);
        let first =
            ids.next_id(Timestamp::from_millis(1), &|id| Ok(id >= Id::Integer((1 << 20) + 3))).unwrap();
        assert_eq!(first, Id::Integer((1 << 20) + 3));
        assert_eq!(ids.next_id(Timestamp::from_millis(1), &free).unwrap(), Id::Integer((1 << 20) + 4));
    }

    #[test]
    fn uuids_are_of_version_7_and_carry_the_time() {
        let mut ids = TimeOrderedIds::new(IdKind::Uuid, None);
        for _ in 0..100 {
            let Id::Uuid(uuid) = ids.next_id(Timestamp::from_millis(0x0123_4567_89ab), &free).unwrap() else {
                panic!("a UUID was asked for");
            };
            assert_eq!(uuid >> 80, 0x0123_4567_89ab);
            assert_eq!((uuid >> 76 & 0xf, uuid >> 62 & 3), (7, 2));
        }
        let full = to_uuid((1 << 74) - 1);
        assert_eq!(
            following(Id::Uuid(full)).unwrap(),
            Id::Uuid(to_uuid(1 << 74)),
            "it counts over into the time"
        );
        assert_eq!(from_uuid(to_uuid(u128::MAX >> 6)), u128::MAX >> 6);
    }

    #[test]
    fn the_end_of_all_ids_is_told() {
        let mut ids = TimeOrderedIds::new(IdKind::Integer, Some(Id::Integer(INTEGER_MAX)));
        assert!(ids.next_id(Timestamp::from_millis(1), &free).is_err());
        let mut ids = TimeOrderedIds::new(IdKind::Integer, None);
        ids.next_id(Timestamp::MAX, &free).unwrap();
    }
}
