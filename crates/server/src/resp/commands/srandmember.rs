//! `SRANDMEMBER key [count]`: random members of a set. A negative count may reply a member more than once, as in Redis.
//!
//! Every member of a set of up to 10,000 is equally likely. A list is read in its order, so of a larger set only the newest 10,000
//! are drawn from: the work does not grow with the set.

use kinfolk_core::graph::{EdgeList, UserSet};

use super::super::random;
use super::prelude::*;
use super::scard::sizes;
use super::smembers::MEMBERS_MAX;
use crate::limits::RowCost;

/// How many entries are read from a list at once.
const PAGE: usize = 1_000;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "srandmember",
        summary: "random members of a set; of a large one, among its newest 10,000",
        syntax: "key [count]",
        complexity: "O(N) where N is the size of the set, up to 10,000",
        example: &["following:7"],
        arity: -2,
        keys: Keys::ONE,
        operation: Operation::Following,
        cost: Cost::Rows,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    if request.arguments.len() > 3 {
        return Err(syntax_error());
    }
    let key = request.key(1)?;
    let Some(text) = request.arguments.get(2) else {
        let drawn = draw(&newest(request, key).await?, Draw::Repeated(1));
        match drawn.first() {
            Some(&id) => out.id(id),
            None => out.null(),
        }
        return Ok(());
    };
    let count = number::<i64>(text)?;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let size = sizes(request, &[key]).await?.into_iter().sum::<u64>();
    let is_large = size > MEMBERS_MAX as u64;
    if wanted > MEMBERS_MAX && (count < 0 || is_large) {
        let detail = format!("one reply has at most {MEMBERS_MAX} members: ask for fewer, or use SSCAN");
        return Err(invalid(detail));
    }
    let draws = if count < 0 { Draw::Repeated(wanted) } else { Draw::Distinct(wanted) };
    let members = if wanted == 0 { Vec::new() } else { newest(request, key).await? };
    out.id_list(&draw(&members, draws));
    Ok(())
}

/// The newest members, as many as are drawn from.
async fn newest<S: Store>(request: &Request<'_, S>, key: UserSet) -> Result<Vec<Id>> {
    let list = EdgeList { kind: EdgeKind::Follow, side: key.side, of: key.of };
    let mut cost = RowCost::new(request.reading().budget);
    let (mut members, mut after) = (Vec::new(), None);
    while members.len() < MEMBERS_MAX {
        let page = request.graph().walk(list, after, PAGE, request.at_least).await?;
        cost.charge(page.len())?;
        members.extend(page.iter().map(|entry| entry.id));
        after = page.last().copied();
        if page.len() < PAGE {
            break;
        }
        tokio::task::yield_now().await;
    }
    Ok(members)
}

/// How many members are drawn.
#[derive(Clone, Copy)]
enum Draw {
    /// Each at most once.
    Distinct(usize),
    Repeated(usize),
}

fn draw(members: &[Id], draw: Draw) -> Vec<Id> {
    if members.is_empty() {
        return Vec::new();
    }
    match draw {
        Draw::Repeated(count) => {
            (0..count).filter_map(|_| members.get(random::below(members.len())).copied()).collect()
        }
        Draw::Distinct(count) => {
            let mut left = members.to_vec();
            let (size, count) = (left.len(), count.min(left.len()));
            for at in 0..count {
                left.swap(at, at + random::below(size - at));
            }
            left.truncate(count);
            left
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn members(count: u64) -> Vec<Id> {
        (0..count).map(Id::Integer).collect()
    }

    #[test]
    fn distinct_members_are_distinct_and_no_more_than_there_are() {
        for (size, count, drawn) in [(0, 5, 0), (5, 0, 0), (5, 3, 3), (5, 9, 5)] {
            let found = draw(&members(size), Draw::Distinct(count));
            assert_eq!(found.len(), drawn);
            assert_eq!(found.iter().collect::<HashSet<_>>().len(), drawn);
        }
        assert_eq!(draw(&members(2), Draw::Repeated(7)).len(), 7);
        assert_eq!(draw(&[], Draw::Repeated(7)).len(), 0);
    }

    #[test]
    fn all_members_are_equally_likely() {
        for draws in [Draw::Distinct(3), Draw::Repeated(3)] {
            let mut counts = HashMap::<Id, usize>::new();
            for _ in 0..10_000 {
                draw(&members(10), draws).into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
            }
            assert!(
                counts.len() == 10 && counts.values().all(|count| (2_600..3_400).contains(count)),
                "{counts:?}"
            );
        }
    }
}
