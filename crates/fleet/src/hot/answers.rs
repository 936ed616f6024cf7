//! Answers to one sort of question, kept while their accounts are hot.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use kinfolk_core::{Error, Frontier, Result};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Question;
use super::heat::Heat;
use super::kept::{Kept, Needed};
use super::slot::Slot;
use super::state::{HotVerdict, Verdicts};
use crate::Fleet;
use crate::fleet::Shared;
use crate::read::Reader;

/// Questions of one sort that have a slot.
const SLOTS_MAX: usize = 1_024;

/// Memory of the answers to one sort of question.
const BYTES_MAX: usize = 16 << 20;

/// A slot that nobody has used for so long makes room.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// A caller waits for the read that is under way, and for one that has begun after it came. What that does not show, the host does not
/// show yet.
const FLIGHTS_MAX: usize = 2;

/// The slots of one sort of question.
pub(crate) struct HotAnswers<Q: Question> {
    /// Reads in a second that make an account hot.
    enough: Option<u32>,
    heat: Heat,
    slots: Mutex<Slots<Q>>,
    verdicts: Verdicts,
}

struct Slots<Q: Question> {
    by_question: HashMap<Q, Used<Q::Answer>, RandomState>,
    /// What the answers take at most.
    bytes: usize,
    swept: Option<Instant>,
}

/// A slot, and when it was used.
struct Used<A> {
    slot: Arc<Slot<A>>,
    at: Instant,
}

impl<Q: Question> Slots<Q> {
    /// The slot of a question, unless there is no room for it.
    fn get(&mut self, question: Q, now: Instant) -> Option<Arc<Slot<Q::Answer>>> {
        if let Some(used) = self.by_question.get_mut(&question) {
            used.at = now;
            return Some(Arc::clone(&used.slot));
        }
        if !self.has_room(question) && self.swept.is_none_or(|at| now - at >= IDLE_MAX / 10) {
            self.sweep(now);
        }
        if !self.has_room(question) {
            return None;
        }
        self.bytes += question.bytes();
        let used = Used { slot: Arc::default(), at: now };
        Some(Arc::clone(&self.by_question.entry(question).or_insert(used).slot))
    }

    fn has_room(&self, question: Q) -> bool {
        self.by_question.len() < SLOTS_MAX && question.bytes() <= BYTES_MAX - self.bytes
    }

    /// Removes the slots that nobody uses any more.
    fn sweep(&mut self, now: Instant) {
        self.by_question.retain(|_, used| now - used.at <= IDLE_MAX);
        self.bytes = self.by_question.keys().map(|question| question.bytes()).sum();
        self.swept = Some(now);
    }
}

/// Where an answer comes from.
enum Found<A> {
    Kept(Arc<Kept<A>>, Arc<Slot<A>>),
    Slot(Arc<Slot<A>>),
    /// The account is not hot, or there is no room for it.
    Nowhere,
}

impl<Q: Question> HotAnswers<Q> {
    pub(super) fn new(enough: Option<u32>) -> Self {
        let slots = Slots { by_question: HashMap::default(), bytes: 0, swept: None };
        Self { enough, heat: Heat::new(), slots: Mutex::new(slots), verdicts: Verdicts::default() }
    }

    /// How many questions have a slot, and what was said.
    pub(super) fn state(&self) -> (usize, [u64; HotVerdict::ALL.len()]) {
        let mut slots = self.slots.lock();
        slots.sweep(Instant::now());
        (slots.by_question.len(), self.verdicts.get())
    }

    fn find(&self, shared: &Shared, question: Q, at_least: &Frontier) -> Found<Q::Answer> {
        if !self.enough.is_some_and(|enough| self.heat.note(&question, enough)) {
            return Found::Nowhere;
        }
        let Some(slot) = self.slots.lock().get(question, Instant::now()) else {
            self.verdicts.add(HotVerdict::Passed);
            return Found::Nowhere;
        };
        let kept = slot.kept(Needed::now(shared, question, at_least));
        kept.map_or_else(|| Found::Slot(Arc::clone(&slot)), |kept| Found::Kept(kept, Arc::clone(&slot)))
    }

    /// The answer of a read that callers share. None if the caller has to ask the host itself.
    async fn share(
        &self,
        shared: &Arc<Shared>,
        slot: &Arc<Slot<Q::Answer>>,
        question: Q,
        at_least: &Frontier,
    ) -> Option<Result<Q::Answer>> {
        for _ in 0..FLIGHTS_MAX {
            let boarded = slot.board(shared, &Handle::current(), question);
            let is_own = boarded.is_own;
            match boarded.outcome().await {
                Ok(kept) if kept.shows(Needed::now(shared, question, at_least)) => {
                    self.verdicts.add(if is_own { HotVerdict::Read } else { HotVerdict::Shared });
                    return Some(Ok(kept.answer.clone()));
                }
                // The caller would be told the same, once it has waited as long again. With a token it may be told what is missing.
                Err(error @ Error::Unavailable { .. }) if at_least.is_empty() => return Some(Err(error)),
                _ if is_own => break,
                _ => {}
            }
        }
        self.verdicts.add(HotVerdict::Passed);
        None
    }
}

impl Fleet {
    /// Answers a question: from what is kept, if its account is hot.
    pub(crate) async fn ask_hot<Q: Question>(
        &self,
        answers: fn(&Shared) -> &HotAnswers<Q>,
        question: Q,
        at_least: &Frontier,
    ) -> Result<Q::Answer> {
        let slot = match answers(&self.shared).find(&self.shared, question, at_least) {
            Found::Kept(kept, slot) => {
                answers(&self.shared).verdicts.add(HotVerdict::Kept);
                if kept.is_due() {
                    slot.board(&self.shared, self.handle(), question);
                }
                return Ok(kept.answer.clone());
            }
            Found::Slot(slot) => Some(slot),
            Found::Nowhere => None,
        };
        let (shared, at_least) = (Arc::clone(&self.shared), at_least.clone());
        self.run(async move {
            let Some(slot) = slot else {
                return Reader::run(shared, at_least, |reader| question.read(reader)).await;
            };
            if let Some(answer) = answers(&shared).share(&shared, &slot, question, &at_least).await {
                return answer;
            }
            let shown = Arc::new(Reader::run(shared, at_least, |reader| Kept::read(question, reader)).await?);
            slot.put(Arc::clone(&shown));
            Ok(shown.answer.clone())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{EdgeKind, Id};

    use super::*;
    use crate::hot::{CountsOf, FirstPage};

    fn counts_of(number: u64) -> CountsOf {
        CountsOf { kind: EdgeKind::Follow, of: Id::Integer(number) }
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_bounded_and_idle_ones_make_room() {
        let answers = HotAnswers::<CountsOf>::new(Some(1));
        let get = |number| answers.slots.lock().get(counts_of(number), Instant::now());
        assert!((0..SLOTS_MAX as u64).all(|number| get(number).is_some()));
        assert!(get(9_999).is_none());
        tokio::time::advance(IDLE_MAX).await;
        assert!(get(0).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(get(9_999).is_some());
        assert_eq!(answers.state().0, 2, "the used one and the new one");
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_take_too_much_memory_have_no_slot() {
        let answers = HotAnswers::<FirstPage>::new(Some(1));
        let page = |number, limit| FirstPage { kind: EdgeKind::Follow, of: Id::Integer(number), limit };
        let get = |page| answers.slots.lock().get(page, Instant::now());
        assert!(get(page(0, usize::MAX)).is_none());
        let large = BYTES_MAX / page(0, 1).bytes();
        assert!(get(page(0, large)).is_some());
        assert!(get(page(1, 1)).is_none() && get(page(0, large)).is_some());
    }
}
