//! Compares all that a quiet store answers about some users with the model. Says what differs; never panics.

use std::fmt::Debug;
use std::time::Duration;

use kinfolk_core::changes::ChangeLog;
use kinfolk_core::feeds::{Post, PostKey};
use kinfolk_core::graph::{Edge, EdgeStore, ListEntry, ListKey, Side, UserSet};
use kinfolk_core::suggestions::{Ranking, SuggestionStore, WalkBounds};
use kinfolk_core::{EdgeKind, Frontier, GraphStore, Id, Result, Timestamp};

use crate::model::Model;
use crate::model::suggestions::Kept;
use crate::seen::Seen;
use crate::threads::block_on;
use crate::users::by_shard;

/// Ok, or what is wrong.
pub(crate) type Verdict = std::result::Result<(), String>;

/// The kinds of edge that tests use.
pub(crate) const KINDS: [EdgeKind; 2] = [EdgeKind::Follow, EdgeKind::Block];

/// More than any list or log in a test: a walk that gets so far goes in circles.
pub(crate) const ENTRIES_MAX: usize = 20_000;

/// Whether a store answers like the model: every check, list, page, count and change of these users, and what
/// they have in common.
pub(crate) fn compare<S: GraphStore>(store: &S, model: &Model, users: &[Id]) -> Verdict {
    let store = &Seen::new(store, model.frontier());
    compare_log(store, model)?;
    for kind in KINDS.into_iter().chain([EdgeKind::Dismissal]) {
        compare_checks(store, model, kind, users)?;
        compare_counts(store, model, kind, users)?;
        for &of in users {
            compare_lists(store, model, kind, of)?;
        }
    }
    compare_overlaps(store, model, KINDS[0], users)
}

/// Fails with both values if they differ.
pub(crate) fn equal<T: PartialEq + Debug>(what: impl FnOnce() -> String, found: &T, expected: &T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    Err(format!("{}: the store answers {found:?}, expected {expected:?}", what()))
}

/// Waits for an answer that must not be an error.
pub(crate) fn answer<T>(
    what: &str,
    future: impl Future<Output = Result<T>>,
) -> std::result::Result<T, String> {
    block_on(future).map_err(|error| format!("{what} failed: {error}"))
}

/// Walks a list to its end in pages, whatever list `read` gives.
pub(crate) fn walk(
    page_limit: usize,
    read: impl FnMut(Option<ListKey>) -> std::result::Result<Vec<ListEntry>, String>,
) -> std::result::Result<Vec<ListEntry>, String> {
    walk_by(|entry| *entry, page_limit, read)
}

/// As [`walk`], for a list of posts.
pub(crate) fn walk_posts(
    page_limit: usize,
    read: impl FnMut(Option<PostKey>) -> std::result::Result<Vec<Post>, String>,
) -> std::result::Result<Vec<Post>, String> {
    walk_by(Post::key, page_limit, read)
}

/// As [`walk`], for any list whose entries tell their places.
pub(crate) fn walk_by<T, K>(
    key: impl Fn(&T) -> K,
    page_limit: usize,
    mut read: impl FnMut(Option<K>) -> std::result::Result<Vec<T>, String>,
) -> std::result::Result<Vec<T>, String> {
    let mut entries: Vec<T> = Vec::new();
    loop {
        let page = read(entries.last().map(&key))?;
        if page.len() > page_limit {
            return Err(format!("a page of {} entries, asked for {page_limit}", page.len()));
        }
        let is_last = page.len() < page_limit;
        entries.extend(page);
        if is_last {
            return Ok(entries);
        }
        if entries.len() > ENTRIES_MAX {
            return Err(format!("a walk in pages of {page_limit} does not end"));
        }
    }
}

fn compare_checks<S: GraphStore>(
    store: &Seen<'_, S>,
    model: &Model,
    kind: EdgeKind,
    users: &[Id],
) -> Verdict {
    let to_all = |&follower: &Id| users.iter().map(move |&followee| Edge { follower, followee });
    let edges: Vec<Edge> =
        users.iter().flat_map(to_all).filter(|edge| edge.follower != edge.followee).collect();
    let contains = answer("contains", store.contains(kind, &edges))?;
    let since = answer("since", store.since(kind, &edges))?;
    equal(|| "answers of contains".to_owned(), &contains.len(), &edges.len())?;
    equal(|| "answers of since".to_owned(), &since.len(), &edges.len())?;
    for ((&edge, contains), since) in edges.iter().zip(contains).zip(since) {
        equal(|| format!("{kind:?} contains {edge:?}"), &contains, &model.contains(kind, edge))?;
        let alone = answer("contains", store.contains(kind, &[edge]))?;
        equal(|| format!("{kind:?} contains {edge:?} alone"), &alone, &vec![contains])?;
        let now = store.contains_now(kind, edge);
        equal(|| format!("{kind:?} contains_now {edge:?}"), &now.unwrap_or(contains), &contains)?;
        equal(|| format!("{kind:?} since of {edge:?}"), &since, &model.since(kind, edge))?;
    }
    Ok(())
}

fn compare_counts<S: EdgeStore>(store: &Seen<'_, S>, model: &Model, kind: EdgeKind, users: &[Id]) -> Verdict {
    let counts = answer("counts", store.counts(kind, users))?;
    let expected: Vec<_> = users.iter().map(|&of| model.counts(kind, of)).collect();
    equal(|| format!("{kind:?} counts of {users:?}"), &counts, &expected)
}

fn compare_lists<S: EdgeStore>(store: &Seen<'_, S>, model: &Model, kind: EdgeKind, of: Id) -> Verdict {
    for page_limit in [1, 2, 1_000] {
        for side in [Side::Following, Side::Followers] {
            let entries =
                walk(page_limit, |after| answer("list", store.list(kind, side, of, after, page_limit)))?;
            let what = || format!("{kind:?} {side:?} of {of} in pages of {page_limit}");
            equal(what, &entries, &model.list(kind, side, of, None, usize::MAX))?;
        }
        let friends =
            walk(page_limit, |after| answer("friends", store.friends(kind, of, after, page_limit)))?;
        let what = || format!("{kind:?} friends of {of} in pages of {page_limit}");
        equal(what, &friends, &model.friends(kind, of, None, usize::MAX))?;
    }
    Ok(())
}

/// Two sets, of every pair of users and of each alone, and with a third one.
fn compare_overlaps<S: EdgeStore>(
    store: &Seen<'_, S>,
    model: &Model,
    kind: EdgeKind,
    users: &[Id],
) -> Verdict {
    let set = |side: Side| move |&of: &Id| UserSet { side, of };
    let all: Vec<UserSet> =
        users.iter().map(set(Side::Following)).chain(users.iter().map(set(Side::Followers))).collect();
    for (index, &one) in all.iter().enumerate() {
        for &other in &all[index..] {
            for sets in [&[one, other][..], &[other, all[index / 2], one]] {
                compare_overlap(store, model, kind, sets)?;
            }
        }
    }
    Ok(())
}

fn compare_overlap<S: EdgeStore>(
    store: &Seen<'_, S>,
    model: &Model,
    kind: EdgeKind,
    sets: &[UserSet],
) -> Verdict {
    let whole = model.overlap(kind, sets, None, usize::MAX);
    for (after, limit) in [(None, ENTRIES_MAX), (whole.ids.first().copied(), 1), (sets[0].of.into(), 2)] {
        let found = answer("overlap", store.overlap(kind, sets, after, limit))?;
        let what = || format!("{kind:?} overlap of {sets:?}, {limit} after {after:?}");
        equal(what, &found, &model.overlap(kind, sets, after, limit))?;
    }
    Ok(())
}

/// Every walk for suggestions of these users: with and without a bound, in every ranking, all of it and the best two.
pub(crate) fn compare_candidates<S: SuggestionStore>(
    store: &Seen<'_, S>,
    model: &Model,
    users: &[Id],
) -> Verdict {
    for &of in users {
        for per_node in [None, Some(1), Some(2), Some(4)] {
            for ranking in Ranking::ALL {
                for results in [2, ENTRIES_MAX] {
                    let bounds = WalkBounds { per_node, results, ranking };
                    let found = answer("candidates", store.candidates(of, bounds))?;
                    let what = || format!("candidates of {of} with {bounds:?}");
                    equal(what, &found, &model.candidates(of, bounds))?;
                }
            }
        }
    }
    Ok(())
}

/// What is stored for each user, of any age and of a day at most.
pub(crate) fn compare_stored<S: SuggestionStore>(
    store: &S,
    kept: &Kept,
    users: &[Id],
    now: Timestamp,
) -> Verdict {
    let store = Seen::new(store, Frontier::default());
    for &of in users {
        for max_age in [Duration::MAX, Duration::from_secs(24 * 60 * 60)] {
            let found = answer("stored_suggestions", store.stored_suggestions(of, max_age))?;
            let what = || format!("stored suggestions of {of}, at most {max_age:?} old");
            equal(what, &found, &kept.stored(of, max_age, now))?;
        }
    }
    Ok(())
}

fn compare_log<S: ChangeLog>(store: &Seen<'_, S>, model: &Model) -> Verdict {
    let changes = by_shard(answer("changes", store.whole_log())?);
    equal(|| "number of changes".to_owned(), &changes.len(), &model.changes.len())?;
    for (change, expected) in changes.iter().zip(&by_shard(model.changes.clone())) {
        equal(|| "the log".to_owned(), change, expected)?;
    }
    let (newest, expected) = (answer("span", store.span())?.newest, model.frontier());
    let is_newest = newest.covers_all(&expected) && expected.covers_all(&newest);
    equal(|| format!("whether {newest} is the newest, where {expected} is"), &is_newest, &true)
}
