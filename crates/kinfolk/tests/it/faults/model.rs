//! What the folder must hold: a set of pairs, and the search for the prefix of the submitted steps that explains
//! what was found in it.

use std::collections::BTreeSet;

use super::workload::{Pair, Step};

/// The edges that exist.
pub type Edges = BTreeSet<Pair>;

/// Brings edges up to date; says whether that changed anything.
pub fn apply(edges: &mut Edges, step: &Step) -> bool {
    match step {
        Step::Follow(pair) => edges.insert(*pair),
        Step::Unfollow(pair) => edges.remove(pair),
        Step::Import(pairs) => {
            let before = edges.len();
            edges.extend(pairs);
            edges.len() > before
        }
    }
}

/// What was submitted on top of a known state, and how much of it was acknowledged.
#[derive(Clone, Copy)]
pub struct Submitted<'a> {
    pub before: &'a Edges,
    pub steps: &'a [Step],
    pub acknowledged: usize,
    /// What was confirmed as it was, between steps whose outcome is unknown.
    pub promises: &'a [Promise],
}

/// An acknowledgement that a pair was already as asked.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    pub pair: Pair,
    pub exists: bool,
    /// How many of the steps came before it.
    pub after: usize,
}

impl<'a> Submitted<'a> {
    /// Steps on top of an empty store.
    pub fn from_nothing(steps: &'a [Step], acknowledged: usize) -> Self {
        const NOTHING: &Edges = &Edges::new();
        Self { before: NOTHING, steps, acknowledged, promises: &[] }
    }

    /// The least number of steps, all acknowledged ones included, whose effect is what was found.
    pub fn explain(self, found: &Edges) -> Result<usize, String> {
        let mut edges = self.before.clone();
        for step in &self.steps[..self.acknowledged] {
            apply(&mut edges, step);
        }
        let mut differing: Edges = edges.symmetric_difference(found).copied().collect();
        let mut closest = (self.acknowledged, differing.clone());
        let mut broken = None;
        for count in self.acknowledged..=self.steps.len() {
            if differing.is_empty() {
                match self.broken_promise(count) {
                    None => return Ok(count),
                    promise => broken = promise,
                }
            }
            let Some(step) = self.steps.get(count) else { break };
            apply(&mut edges, step);
            for pair in step.pairs() {
                if edges.contains(pair) == found.contains(pair) {
                    differing.remove(pair);
                } else {
                    differing.insert(*pair);
                }
            }
            if differing.len() < closest.1.len() {
                closest = (count + 1, differing.clone());
            }
        }
        Err(match broken {
            Some(promise) => format!("lost after it was acknowledged as unchanged: {promise:?}"),
            None => self.describe(closest, found),
        })
    }

    /// A promise that does not hold if just the first `count` steps took effect.
    fn broken_promise(self, count: usize) -> Option<Promise> {
        let kept = |promise: &&Promise| {
            let steps = &self.steps[..count.min(promise.after)];
            let last = steps.iter().rev().find(|step| step.pairs().contains(&promise.pair));
            let exists = match last {
                Some(Step::Unfollow(_)) => false,
                Some(_) => true,
                None => self.before.contains(&promise.pair),
            };
            exists == promise.exists
        };
        self.promises.iter().find(|promise| !kept(promise)).copied()
    }

    /// Names some pairs that differ from the prefix that explains most, and the steps that touched them last.
    fn describe(self, (prefix, differing): (usize, Edges), found: &Edges) -> String {
        let pairs: Vec<String> = differing
            .iter()
            .take(6)
            .map(|pair| {
                let there = if found.contains(pair) { "found" } else { "missing" };
                let touching: Vec<usize> =
                    (0..self.steps.len()).filter(|&index| self.steps[index].pairs().contains(pair)).collect();
                let last = &touching[touching.len().saturating_sub(4)..];
                format!("{pair:?} {there}, touched by steps {last:?}")
            })
            .collect();
        format!(
            "no prefix of the {} submitted steps, {} of them acknowledged, explains the {} edges found; \
             the closest, of {prefix} steps, differs in {} pairs: {}",
            self.steps.len(),
            self.acknowledged,
            found.len(),
            differing.len(),
            pairs.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::super::workload::Workload;
    use super::*;

    #[test]
    fn finds_every_prefix_from_the_acknowledged_one_on_and_no_other() {
        let steps = Workload::new(Random::new(1), 9).steps(200);
        let mut states = vec![Edges::new()];
        for step in &steps {
            let mut next = states.last().unwrap().clone();
            apply(&mut next, step);
            states.push(next);
        }
        let submitted = Submitted::from_nothing(&steps, 120);
        for (count, state) in states.iter().enumerate() {
            match submitted.explain(state) {
                Ok(explained) => assert_eq!(&states[explained], state, "at {count}"),
                Err(_) => assert!(count < 120, "state {count} is a prefix and was not found"),
            }
        }
        let mut foreign = states[150].clone();
        foreign.insert(Pair { follower: 100, followee: 200 });
        assert!(submitted.explain(&foreign).unwrap_err().contains("100->200 found"));
    }

    #[test]
    fn an_import_counts_as_a_whole() {
        let pair = |follower, followee| Pair { follower, followee };
        let steps = [Step::Import(vec![pair(1, 2), pair(2, 3)]), Step::Unfollow(pair(1, 2))];
        let submitted = Submitted::from_nothing(&steps, 0);
        assert_eq!(submitted.explain(&Edges::from([pair(1, 2), pair(2, 3)])), Ok(1));
        assert_eq!(submitted.explain(&Edges::from([pair(2, 3)])), Ok(2));
        assert!(submitted.explain(&Edges::from([pair(1, 2)])).is_err());
    }

    #[test]
    fn a_promise_after_a_failed_step_must_hold() {
        let pair = Pair { follower: 1, followee: 2 };
        let steps = [Step::Follow(pair), Step::Unfollow(pair)];
        // The unfollow failed with an unknown outcome; then a follow was told that nothing was to be changed.
        let promises = [Promise { pair, exists: true, after: 2 }];
        let submitted = Submitted { promises: &promises, ..Submitted::from_nothing(&steps, 1) };
        assert_eq!(submitted.explain(&Edges::from([pair])), Ok(1));
        assert!(submitted.explain(&Edges::new()).unwrap_err().contains("unchanged"));
    }
}
