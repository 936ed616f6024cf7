//! Tests of the comparison itself: a model that differs from a store in one thing is found to differ, and so is a history.

use super::check::Expected;
use super::compare::compare;
use super::history::{Bounds, History};
use super::model::{Comment, Model, Version};
use super::operation::{Operation, Status};
use super::workload::{USERS, Workload};
use super::{End, Server};
use crate::faults::random::Random;
use crate::faults::scratch;
use crate::faults::workload::Pair;

/// Makes a model differ in one thing; whether there was such a thing.
type Change = fn(&mut Model) -> bool;

const CHANGES: [(&str, Change); 19] = [
    ("an edge is missing", |model| model.edges.pop_first().is_some()),
    ("there is another edge", |model| {
        let users = || 1..=USERS;
        let mut pairs = users().flat_map(|follower| users().map(move |followee| Pair { follower, followee }));
        let absent = pairs.find(|pair| pair.follower != pair.followee && !model.edges.contains_key(pair));
        absent.is_some_and(|pair| model.edges.insert(pair, String::new()).is_none())
    }),
    ("an edge has another time", |model| {
        let first = model.edges.values_mut().next();
        first.map(|since| since.push('0')).is_some()
    }),
    ("a post is there still", |model| {
        let post = model.posts.values_mut().find(|post| post.deleted);
        post.map(|post| post.deleted = false).is_some()
    }),
    ("a post is gone", |model| {
        let post = model.posts.values_mut().find(|post| !post.deleted);
        post.map(|post| post.deleted = true).is_some()
    }),
    ("a post was first answered in another way", |model| {
        let post = model.posts.values_mut().find(|post| !post.deleted);
        post.map(|post| post.first = Some(String::new())).is_some()
    }),
    ("a thread is locked", |model| {
        let post = model.posts.values_mut().find(|post| !post.deleted && !post.locked);
        post.map(|post| post.locked = true).is_some()
    }),
    ("a thread is not locked", |model| {
        let post = model.posts.values_mut().find(|post| !post.deleted && post.locked);
        post.map(|post| post.locked = false).is_some()
    }),
    ("a comment is missing", |model| {
        let last = model.comments.pop_last();
        let answered = last.and_then(|(_, comment)| comment.new.reply_to);
        answered.is_none_or(|id| {
            model.comments.get_mut(&id).is_some_and(|answered| {
                answered.reply_count -= 1;
                true
            })
        })
    }),
    ("a text differs", |model| {
        change_comment(model, is_active, |comment| comment.versions.last_mut().unwrap().body.push('x'))
    }),
    ("an older text differs", |model| {
        change_comment(model, is_edited, |comment| comment.versions[0].body.push('x'))
    }),
    ("an edit is missing", |model| change_comment(model, is_edited, |comment| drop(comment.versions.pop()))),
    ("an edit too many", |model| {
        change_comment(model, is_active, |comment| {
            comment.versions.push(Version { at: String::new(), body: String::new() });
        })
    }),
    ("a comment is not deleted", |model| {
        let is_deleted = |comment: &Comment| comment.status == Status::Deleted;
        change_comment(model, is_deleted, |comment| comment.status = Status::Active)
    }),
    ("a comment is deleted", |model| {
        change_comment(model, is_active, |comment| comment.status = Status::Deleted)
    }),
    ("a removal has another reason", |model| {
        let is_removed = |comment: &Comment| comment.status == Status::Removed;
        change_comment(model, is_removed, |comment| comment.reason = None)
    }),
    ("a purged comment shows its text", |model| {
        let is_purged = |comment: &Comment| comment.status == Status::Purged;
        change_comment(model, is_purged, |comment| comment.status = Status::Removed)
    }),
    ("a comment shows its text although it is purged", |model| {
        change_comment(model, is_active, |comment| comment.status = Status::Purged)
    }),
    ("a repetition is answered in another way", |model| {
        change_comment(model, is_active, |comment| comment.first = Some(String::new()))
    }),
];

fn is_active(comment: &Comment) -> bool {
    comment.status == Status::Active
}

fn is_edited(comment: &Comment) -> bool {
    is_active(comment) && comment.versions.len() > 1
}

fn change_comment(model: &mut Model, is_meant: fn(&Comment) -> bool, change: fn(&mut Comment)) -> bool {
    model.comments.values_mut().find(|comment| is_meant(comment)).map(change).is_some()
}

#[test]
fn every_difference_is_found() {
    let folder = scratch();
    let server = Server::on(&folder.path().join("data")).expect("it starts");
    let (mut history, mut workload) = (History::default(), Workload::new(Random::new(3)));
    server.write(&mut history, &mut workload, 60).expect("an undisturbed run succeeds");
    let reader = server.reader();
    compare(&history.model, &reader).expect("nothing differs");
    for (what, change) in CHANGES {
        let mut model = history.model.clone();
        assert!(change(&mut model), "{what}: there is nothing to change");
        compare(&model, &reader).expect_err(what);
    }
    let bounds = Expected::all(&history).bounds;
    history.recovered(&reader, bounds).expect("nothing differs");
    let Bounds { at_least: count, .. } = bounds;
    let differs = |what: &str, history: &History, bounds: Bounds| {
        assert!(history.recovered(&reader, bounds).is_err(), "{what} is not found");
    };
    differs("a lost end", &history, Bounds { at_least: count + 1, at_most: count + 1 });
    differs("an end that nobody submitted", &history, Bounds { at_least: count - 1, at_most: count - 1 });
    let mut swapped = history.clone();
    swapped.entries.swap(count - 1, count - 2);
    differs("another order", &swapped, bounds);
    let mut later = history.clone();
    later.entries[count - 1].at.push('0');
    differs("another time", &later, bounds);
    let mut longer = history.clone();
    longer.note_import(Operation::Import { pairs: Vec::new(), since: String::new() });
    differs("an acknowledged operation that is not in the log", &longer, bounds);
    server.end(End::InOrder).require_success("serving").expect("it ends in order");
}
