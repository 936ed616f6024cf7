//! Counts for numbers: how often each was met, and what the meetings weigh together. Kept and used again, so that a
//! walk allocates nothing once it has grown.

use kinfolk_core::suggest::Score;

/// What is known of a number that was met.
#[derive(Clone, Copy, Debug)]
pub struct Tallied {
    /// Whose number.
    pub number: u32,
    /// How often it was met.
    pub count: u32,
    /// What the meetings weigh.
    pub score: Score,
}

/// A place in the table: where the entry is, if it was written in the same round.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    round: u32,
    entry: u32,
}

/// A hash table of counts. Emptied by beginning another round.
#[derive(Debug)]
pub struct Tally {
    slots: Vec<Slot>,
    entries: Vec<Tallied>,
    round: u32,
}

const SLOTS_MIN: usize = 1 << 10;
/// A table that one large walk has made larger than this is not kept for the next.
const SLOTS_KEPT_MAX: usize = 1 << 22;

impl Default for Tally {
    fn default() -> Self {
        Self { slots: vec![Slot::default(); SLOTS_MIN], entries: Vec::new(), round: 1 }
    }
}

impl Tally {
    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.round == u32::MAX || self.slots.len() > SLOTS_KEPT_MAX {
            *self = Self::default();
        }
        self.entries.clear();
        self.round += 1;
    }

    /// All that was met, in the order of the first meetings.
    pub fn entries(&self) -> &[Tallied] {
        &self.entries
    }

    /// Meets a number once more.
    #[inline]
    pub fn add(&mut self, number: u32, weight: Score) {
        let at = self.find(number);
        let slot = self.slots[at];
        if slot.round == self.round {
            let entry = &mut self.entries[slot.entry as usize];
            entry.count += 1;
            entry.score += weight;
        } else {
            self.slots[at] = Slot { round: self.round, entry: self.entries.len() as u32 };
            self.entries.push(Tallied { number, count: 1, score: weight });
            if self.entries.len() * 2 > self.slots.len() {
                self.grow();
            }
        }
    }

    /// What is known of a number, if it was met.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Tallied> {
        let place = self.place(number)?;
        self.entries.get_mut(place)
    }

    /// How many were met before a number was first, if it was.
    #[inline]
    pub fn place(&self, number: u32) -> Option<usize> {
        let slot = self.slots[self.find(number)];
        (slot.round == self.round).then_some(slot.entry as usize)
    }

    /// Where a number is, or would be. There is always a free slot.
    #[inline]
    fn find(&self, number: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.round != self.round || self.entries[slot.entry as usize].number == number {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        self.slots = vec![Slot::default(); self.slots.len() * 4];
        for (entry, number) in self.entries.iter().map(|entry| entry.number).enumerate().collect::<Vec<_>>() {
            let at = self.find(number);
            self.slots[at] = Slot { round: self.round, entry: entry as u32 };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(rounds in proptest::collection::vec(proptest::collection::vec((0u32..5_000, 1u64..9), 0..2_000), 1..4)) {
            let mut tally = Tally::default();
            for round in rounds {
                tally.clear();
                let mut model: HashMap<u32, (u32, u64)> = HashMap::new();
                for (number, weight) in round {
                    tally.add(number, Score(weight));
                    let known = model.entry(number).or_default();
                    *known = (known.0 + 1, known.1 + weight);
                }
                prop_assert_eq!(tally.entries().len(), model.len());
                for entry in tally.entries() {
                    prop_assert_eq!(model[&entry.number], (entry.count, entry.score.0));
                }
                prop_assert!(tally.get_mut(6_000).is_none());
            }
        }
    }
}
