//! Ids as the bytes and numbers that the store works with: `u64` for integers, `u128` for UUIDs.

use std::fmt::Debug;
use std::hash::Hash;

use kinfolk_core::{Id, IdKind};

/// An id without its kind. A store has one kind, so the code below it is written once for both.
pub(crate) trait IdEncoding: Copy + Debug + Eq + Ord + Hash + Default + Send + Sync + 'static {
    /// The kind of ids that this type holds.
    const KIND: IdKind;
    /// How many bytes one takes on disk.
    const LEN: usize;

    /// The bare value. The store has checked the kind before: another kind is a bug.
    fn from_id(id: Id) -> Self;

    /// The id again.
    fn to_id(self) -> Id;

    /// Appends the value, big-endian, so that bytes sort as ids do.
    fn push_to(self, bytes: &mut Vec<u8>);

    /// Reads [`IdEncoding::LEN`] bytes.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// The difference to a smaller value, as 128 bits.
    fn minus(self, smaller: Self) -> u128;

    /// The value that is this much larger, if it fits.
    fn plus(self, difference: u128) -> Option<Self>;
}

macro_rules! id_encoding {
    ($number:ty, $kind:ident) => {
        impl IdEncoding for $number {
            const KIND: IdKind = IdKind::$kind;
            const LEN: usize = size_of::<Self>();

            #[inline]
            fn from_id(id: Id) -> Self {
                match id {
                    Id::$kind(value) => value,
                    _ => unreachable!("the kind of every id is checked at the entrance"),
                }
            }

            fn to_id(self) -> Id {
                Id::$kind(self)
            }

            fn push_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }

            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_be_bytes)
            }

            fn minus(self, smaller: Self) -> u128 {
                u128::from(self - smaller)
            }

            fn plus(self, difference: u128) -> Option<Self> {
                self.checked_add(Self::try_from(difference).ok()?)
            }
        }
    };
}

id_encoding!(u64, Integer);
id_encoding!(u128, Uuid);
