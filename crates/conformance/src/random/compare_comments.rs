//! Compares all that a quiet store answers about comments with the model. Says what differs; never panics.

use kinfolk_core::comments::{Branch, Comment, CommentId, CommentOrder, CommentVersion, Parent};
use kinfolk_core::{Error, Id, Result};

use crate::model::Model;
use crate::ports::ContentPorts;
use crate::random::compare::{ENTRIES_MAX, Verdict, answer, equal, walk_by};
use crate::seen::Seen;
use crate::users::by_shard;

/// An id that no comment has.
pub(crate) const NOBODY: CommentId = CommentId(5);

const ORDERS: [CommentOrder; 2] = [CommentOrder::Oldest, CommentOrder::Newest];

/// Whether a store answers like the model: every comment and its texts, every thread, branch and list in small pages and
/// as a whole, every count, and the log.
pub(crate) fn compare_comments<S: ContentPorts>(
    store: &S,
    model: &Model,
    parents: &[Parent],
    authors: &[Id],
) -> Verdict {
    let store = &Seen::new(store, model.frontier());
    let ids: Vec<CommentId> = model.threads.comments.keys().copied().chain([NOBODY]).collect();
    let found = answer("comments", store.comments(&ids))?;
    let expected: Vec<Option<Comment>> = ids.iter().map(|&id| model.comment(id)).collect();
    equal(|| "comments".to_owned(), &found, &expected)?;
    for &id in &ids {
        for limit in [1, ENTRIES_MAX] {
            let found = versions(store, id, limit)?;
            let expected = model.comment_versions(id, 0, usize::MAX);
            equal(|| format!("the texts of {id} in pages of {limit}"), &found, &expected)?;
        }
    }
    for &parent in parents {
        compare_thread(store, model, parent)?;
    }
    for &author in authors {
        let expected = model.comments_by(author, None, usize::MAX);
        for limit in [1, 3, ENTRIES_MAX] {
            let read = |after| answer("comments_by", store.comments_by(author, after, limit));
            let found = walk_by(|comment: &Comment| comment.id, limit, read)?;
            equal(|| format!("the comments of {author} in pages of {limit}"), &found, &expected)?;
        }
    }
    let found = answer("threads", store.comment_threads(parents))?;
    let expected: Vec<_> = parents.iter().map(|&parent| model.thread_state(parent)).collect();
    equal(|| format!("the states of {parents:?}"), &found, &expected)?;
    let found = by_shard(answer("changes", store.whole_log())?);
    equal(|| "the log".to_owned(), &found, &by_shard(model.log()))
}

fn compare_thread<S: ContentPorts>(store: &Seen<'_, S>, model: &Model, parent: Parent) -> Verdict {
    for order in ORDERS {
        let expected = model.comment_thread(parent, order, None, usize::MAX);
        for limit in [1, 2, 5, ENTRIES_MAX] {
            let read = |after| answer("thread", store.comment_thread(parent, order, after, limit));
            let found = walk_by(|comment: &Comment| comment.id, limit, read)?;
            let what = || format!("the thread of {parent:?}, {order:?}, in pages of {limit}");
            equal(what, &found, &expected)?;
        }
    }
    let all = model.comment_thread(parent, CommentOrder::Oldest, None, usize::MAX);
    let branch = |reply_to| Branch { parent, reply_to, after: None };
    // Those at the top are asked for first and last, so that no place is left out.
    let mut branches: Vec<Branch> = all.iter().map(|comment| branch(Some(comment.id))).collect();
    branches.insert(0, branch(None));
    branches.push(branch(None));
    for limit in [1, 3, ENTRIES_MAX] {
        let found = answer("replies", store.replies(&branches, limit))?;
        let expected: Vec<_> = branches.iter().map(|&branch| model.replies(branch, limit)).collect();
        equal(|| format!("{limit} replies in {branches:?}"), &found, &expected)?;
    }
    for branch in branches {
        let read = |after| {
            let found = answer("replies", store.replies(&[Branch { after, ..branch }], 2))?;
            found.into_iter().next().ok_or_else(|| "no answer for a branch".to_owned())
        };
        let found = walk_by(|comment: &Comment| comment.id, 2, read)?;
        let expected = model.replies(branch, usize::MAX);
        equal(|| format!("{branch:?} in pages of 2"), &found, &expected)?;
    }
    Ok(())
}

fn versions<S: ContentPorts>(
    store: &Seen<'_, S>,
    id: CommentId,
    limit: usize,
) -> std::result::Result<Vec<CommentVersion>, String> {
    let read = |after: Option<u32>| {
        answer("comment_versions", store.comment_versions(id, after.unwrap_or(0), limit))
    };
    walk_by(|version: &CommentVersion| version.version, limit, read)
}

/// An answer that can be compared: errors have no equality, and some have words that are the store's choice.
pub(crate) fn comparable<T>(result: Result<T>) -> std::result::Result<T, String> {
    result.map_err(|error| match error {
        Error::VersionConflict { .. } | Error::CommentDeleted { .. } => error.to_string(),
        other => format!("{:?}", other.code()),
    })
}
