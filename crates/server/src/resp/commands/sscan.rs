//! `SSCAN key cursor [MATCH pattern] [COUNT count]`: a walk over a set of any size. The server keeps nothing between its
//! steps.
//!
//! Clients expect cursors of 64 bits; a position in a list, a time and an id, has more. So a step ends only where the
//! position of the next entry fits, and may reply some members less or more than asked:
//!
//! - Where a new `since` begins: the cursor is that `since` in milliseconds, plus one (0 is the start and the end).
//! - Within one `since` that many edges have, as those of an import may: the cursor has the `since` and, of the next
//!   id, the 12 leading bits. A step ends where these differ. Layout, from the highest bit: 0, 1, since (43 bits: up to
//!   the year 2248), how far the leading bits are shifted (7), the leading bits (12).
//!
//! Every member that stays in the set during the walk is replied exactly once, as the next step starts where the one
//! before has ended, whatever was added or removed. A step that finds no position to end at within
//! [`STEP_MAX`] members is refused; the cursors of `FOLLOWING` and `FOLLOWERS` have no such limit.

use std::io::Write;

use kinfolk_core::graph::{EdgeList, ListEntry, ListKey};
use kinfolk_core::{IdKind, Timestamp};

use super::super::glob::Pattern;
use super::prelude::*;
use crate::limits::RowCost;

const COUNT_DEFAULT: usize = 10;
/// How many members one reply has at most.
const STEP_MAX: usize = 10_000;
/// How many entries are read from a list at once.
const PAGE: usize = 1_000;
/// How many ids are matched before other connections get a turn.
const MATCH_PART: usize = 250;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "sscan",
        summary: "iterates over a set of any size",
        syntax: "key cursor [MATCH pattern] [COUNT count]",
        complexity: "O(1) for every call; O(N) for a whole iteration of N members",
        example: &["following:7", "0"],
        arity: -3,
        keys: Keys::ONE,
        operation: Operation::Following,
        cost: Cost::Rows,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let key = request.key(1)?;
    let cursor = number(request.argument(2)?).map_err(|_| Error::InvalidCursor)?;
    let mut after = ScanPosition::decode(cursor)?.before(key.of.kind());
    let mut count = COUNT_DEFAULT;
    let mut pattern = None;
    for option in request.options(3) {
        match option? {
            option if option.is("COUNT") => match number(option.value)? {
                0 => return Err(syntax_error()),
                asked => count = usize::min(asked, STEP_MAX - 1),
            },
            option if option.is("MATCH") => pattern = Some(Pattern::new(option.value)?),
            _ => return Err(syntax_error()),
        }
    }
    let list = EdgeList { kind: EdgeKind::Follow, side: key.side, of: key.of };
    let mut members = Vec::new();
    let mut cost = RowCost::new(request.reading().budget);
    let next = loop {
        // One more than asked: the next step starts at its position.
        let wanted = (count + 1).saturating_sub(members.len()).clamp(1, PAGE);
        let wanted = if members.len() > count { PAGE } else { wanted };
        let page = request.graph().walk(list, after, wanted, request.at_least).await?;
        after = page.last().copied();
        cost.charge(page.len())?;
        let ended = page.len() < wanted;
        members.extend(page);
        if ended && members.len() <= count + count / 2 {
            break 0;
        }
        if members.len() > count
            && let Some(Cut { len, next }) = cut(&members, count)
        {
            members.truncate(len);
            break next.encode();
        }
        if ended {
            break 0;
        }
        if members.len() > STEP_MAX {
            return Err(invalid(
                "too many members have the same time and alike ids: use FOLLOWING or FOLLOWERS with CURSOR",
            ));
        }
        tokio::task::yield_now().await;
    };
    if let Some(pattern) = pattern {
        members = matching(&members, pattern).await;
    }
    out.array(2);
    out.bulk(itoa::Buffer::new().format(next));
    out.array(members.len());
    members.into_iter().for_each(|member| out.id(member.id));
    Ok(())
}

/// The members whose ids match. A hostile pattern takes long, so other connections get a turn in between.
async fn matching(members: &[ListEntry], pattern: Pattern<'_>) -> Vec<ListEntry> {
    let mut found = Vec::new();
    let mut text = Vec::new();
    for part in members.chunks(MATCH_PART) {
        found.extend(part.iter().filter(|member| {
            text.clear();
            let _ = write!(text, "{}", member.id);
            pattern.matches(&text)
        }));
        tokio::task::yield_now().await;
    }
    found
}

/// Where a step ends.
struct Cut {
    /// How many entries it has.
    len: usize,
    /// Where the next step starts.
    next: ScanPosition,
}

/// The position closest to `count` where a step can end; before it, unless the step would have less than half of its entries and
/// there is a closer one behind it.
fn cut(entries: &[ListEntry], count: usize) -> Option<Cut> {
    let borders = || entries.iter().zip(entries.iter().skip(1)).enumerate();
    let found = |(at, (entry, next)): (usize, (&ListEntry, &ListEntry))| {
        Some(Cut { len: at + 1, next: ScanPosition::between(entry, next)? })
    };
    let before = borders().take(count).rev().find_map(found);
    if before.as_ref().is_some_and(|cut| cut.len * 2 >= count) {
        return before;
    }
    let behind = borders().skip(count).find_map(found);
    match (before, behind) {
        (Some(before), Some(behind)) if behind.len - count > count - before.len => Some(before),
        // What is behind may become known with more entries, but not for ever.
        (before, None) if entries.len() > count + PAGE => before,
        (_, behind) => behind,
    }
}

const SINCE_BITS: u32 = 43;
const SHIFT_BITS: u32 = 7;
const LEADING_BITS: u32 = 12;
const WITHIN: u64 = 1 << (SINCE_BITS + SHIFT_BITS + LEADING_BITS);

/// Where a step starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanPosition {
    Start,
    /// With the first entry that is so old or older.
    Since(Timestamp),
    /// With the first entry of that time whose id begins so or is lower.
    Within(Timestamp, Leading),
}

/// The leading bits of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leading {
    bits: u128,
    shift: u32,
}

impl Leading {
    fn of(id: Id) -> Self {
        let value = match id {
            Id::Integer(value) => u128::from(value),
            Id::Uuid(value) => value,
        };
        let shift = (u128::BITS - value.leading_zeros()).saturating_sub(LEADING_BITS);
        Self { bits: value >> shift, shift }
    }

    /// The lowest id above all that begin so, if there is one.
    fn above(self, kind: IdKind) -> Option<Id> {
        let next = self.bits + 1;
        let value = (next.leading_zeros() >= self.shift).then(|| next << self.shift)?;
        match kind {
            IdKind::Integer => u64::try_from(value).ok().filter(|&value| value <= 1 << 63).map(Id::Integer),
            IdKind::Uuid => Some(Id::Uuid(value)),
        }
    }
}

impl ScanPosition {
    /// Where a step can start with `next`, right after `entry`.
    fn between(entry: &ListEntry, next: &ListEntry) -> Option<Self> {
        if entry.since != next.since {
            return Some(Self::Since(next.since));
        }
        let leading = Leading::of(next.id);
        let is_encodable = leading != Leading::of(entry.id) && next.since.millis() < 1 << SINCE_BITS;
        is_encodable.then_some(Self::Within(next.since, leading))
    }

    fn encode(self) -> u64 {
        match self {
            Self::Start => 0,
            Self::Since(since) => since.millis() + 1,
            Self::Within(since, Leading { bits, shift }) => {
                let position = since.millis() << SHIFT_BITS | u64::from(shift);
                WITHIN | position << LEADING_BITS | bits as u64
            }
        }
    }

    fn decode(cursor: u64) -> Result<Self> {
        let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
        if cursor >= WITHIN << 1 {
            return Err(Error::InvalidCursor);
        }
        if cursor >= WITHIN {
            let position = cursor >> LEADING_BITS;
            let since = Timestamp::from_millis(low(position >> SHIFT_BITS, SINCE_BITS));
            let bits = u128::from(low(cursor, LEADING_BITS));
            return Ok(Self::Within(since, Leading { bits, shift: low(position, SHIFT_BITS) as u32 }));
        }
        let Some(millis) = cursor.checked_sub(1) else { return Ok(Self::Start) };
        if millis > Timestamp::MAX.millis() {
            return Err(Error::InvalidCursor);
        }
        Ok(Self::Since(Timestamp::from_millis(millis)))
    }

    /// The last position in a list before this one.
    fn before(self, kind: IdKind) -> Option<ListKey> {
        let lowest = match kind {
            IdKind::Integer => Id::Integer(0),
            IdKind::Uuid => Id::Uuid(0),
        };
        match self {
            Self::Start | Self::Since(Timestamp::MAX) => None,
            Self::Since(since) => Some(ListKey { since: since.plus_millis(1), id: lowest }),
            Self::Within(since, leading) => match leading.above(kind) {
                Some(id) => Some(ListKey { since, id }),
                None => Self::Since(since).before(kind),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ids with something in common, as ids that are given out in order of time have.
    fn ids() -> impl Strategy<Value = Id> {
        prop_oneof![
            (0_u64..50).prop_map(Id::Integer),
            (0_u64..=i64::MAX as u64).prop_map(Id::Integer),
            (0_u64..1 << 30).prop_map(|low| Id::Integer(low | 1 << 61)),
        ]
    }

    proptest! {
        /// A step starts exactly with the entry that the one before has ended at.
        #[test]
        fn a_cut_is_found_again(
            entries in proptest::collection::btree_set((0_u64..4, ids()), 1..60),
            uuids in any::<bool>(),
            count in 1_usize..30,
        ) {
            let kind = if uuids { IdKind::Uuid } else { IdKind::Integer };
            let mut entries: Vec<ListKey> = entries.into_iter().map(|(since, id)| {
                let id = match (id, kind) {
                    (Id::Integer(value), IdKind::Uuid) => Id::Uuid(u128::from(value) << 64 | 7),
                    (id, _) => id,
                };
                ListKey { since: Timestamp::from_millis(since), id }
            }).collect();
            entries.sort_unstable();
            let Some(Cut { len: at, next: position }) = cut(&entries, count.min(entries.len())) else {
                let alike = |pair: &[ListKey]| ScanPosition::between(&pair[0], &pair[1]).is_none();
                prop_assert!(entries.windows(2).skip(count.min(entries.len())).all(alike));
                return Ok(());
            };
            prop_assert!(at > 0 && at < entries.len());
            let cursor = position.encode();
            prop_assert!(cursor > 0 && cursor <= i64::MAX as u64);
            prop_assert_eq!(ScanPosition::decode(cursor).unwrap(), position);
            let after = position.before(kind);
            let rest: Vec<_> = entries.iter().copied().filter(|&entry| after.is_none_or(|after| entry > after)).collect();
            prop_assert_eq!(&rest[..], &entries[at..]);
        }

        /// Any cursor is a position or an error, never a panic.
        #[test]
        fn any_number_is_a_position_or_refused(cursor in any::<u64>()) {
            if let Ok(position) = ScanPosition::decode(cursor) {
                position.before(IdKind::Integer);
                position.before(IdKind::Uuid);
            }
        }
    }

    #[test]
    fn a_step_has_about_as_many_members_as_asked() {
        // One entry, then many of one time: in groups of 64 ids that begin alike, as an import leaves them.
        let entry = |since, id| ListKey { since: Timestamp::from_millis(since), id: Id::Integer(id) };
        let mut entries = vec![entry(9, 1)];
        entries.extend((0..3_000).rev().map(|number| entry(5, (1 << 23) + number * 64)));
        for count in [50, 100, 300, 1_000] {
            let len = cut(&entries[..(count + 1 + PAGE).min(entries.len())], count).unwrap().len;
            assert!(len * 2 >= count && len <= count + 64, "{len} of {count}");
        }
        // All begin alike: more has to be read, and in the end it is what there is.
        let alike: Vec<_> =
            std::iter::once(entry(9, 1)).chain((0..2_000).rev().map(|id| entry(5, (1 << 40) + id))).collect();
        assert!(cut(&alike[..20], 10).is_none());
        assert_eq!(cut(&alike, 10).unwrap().len, 1);
    }

    #[test]
    fn the_ends_of_all_ranges() {
        assert_eq!(ScanPosition::decode(0).unwrap(), ScanPosition::Start);
        assert_eq!(ScanPosition::Since(Timestamp::MAX).before(IdKind::Integer), None);
        assert!(ScanPosition::decode(Timestamp::MAX.millis() + 2).is_err());
        for id in [Id::Integer(0), Id::Integer(i64::MAX as u64), Id::Uuid(0), Id::Uuid(u128::MAX)] {
            let position = ScanPosition::Within(Timestamp::from_millis(5), Leading::of(id));
            assert_eq!(ScanPosition::decode(position.encode()).unwrap(), position);
            let before = position.before(id.kind()).unwrap();
            assert!(before < ListKey { since: Timestamp::from_millis(5), id }, "{id}");
        }
    }
}
