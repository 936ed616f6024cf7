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
    }
}

/// What was submitted on top of a known state, and how much of it was acknowledged.
#[derive(Clone, Copy)]
pub struct Submitted<'a> {
    pub before: &'a Edges,
    pub steps: &'a [Step],
    pub acknowledged: usize,
}

impl Submitted<'_> {
    /// The least number of steps, all acknowledged ones included, whose effect is what was found.
    pub fn explain(self, found: &Edges) -> Result<usize, String> {
        let mut edges = self.before.clone();
        for step in &self.steps[..self.acknowledged] {
            apply(&mut edges, step);
        }
        let mut differing: Edges = edges.symmetric_difference(found).copied().collect();
        let mut closest = (self.acknowledged, differing.clone());
        for count in self.acknowledged..=self.steps.len() {
            if differing.is_empty() {
                return Ok(count);
            }
            let Some(step) = self.steps.get(count) else { break };
            apply(&mut edges, step);
            let pair = step.pair();
            if edges.contains(&pair) == found.contains(&pair) {
                differing.remove(&pair);
            } else {
                differing.insert(pair);
            }
            if differing.len() < closest.1.len() {
                closest = (count + 1, differing.clone());
            }
        }
        Err(self.describe(closest, found))
    }

    /// Names some pairs that differ from the prefix that explains most, and the steps that touched them last.
    fn describe(self, (prefix, differing): (usize, Edges), found: &Edges) -> String {
        let pairs: Vec<String> = differing
            .iter()
            .take(6)
            .map(|pair| {
                let there = if found.contains(pair) { "found" } else { "missing" };
                let touching: Vec<usize> =
                    (0..self.steps.len()).filter(|&index| self.steps[index].pair() == *pair).collect();
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
        let submitted = Submitted { before: &Edges::new(), steps: &steps, acknowledged: 120 };
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
}
