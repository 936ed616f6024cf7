//! Cases of posts: registered once, stored unchanged, deleted permanently. That keys are forgotten after a week
//! or later cannot be seen from here.

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::feeds::{Delivery, NewPost, Post, PostState, PostWritten};
use kinfolk_core::{Clock, EdgeKind, Error, ErrorCode, Id, IdKind, Position, Sequence, Shard, Timestamp};

use super::helpers::payload;
use crate::cases::subject::assert_code;
use crate::cases::subject::{NO_LIMIT, Subject, follow};
use crate::model::posts::{AHEAD_MS_MAX, FAN_OUT_THRESHOLD, higher};
use crate::ports::PostPorts;
use crate::threads::block_on;

crate::cases::list_cases![cases: PostPorts;
    a_post_is_kept_as_it_was_given,
    a_post_without_a_time_is_made_at_its_event,
    the_time_of_a_post_is_not_that_of_its_event,
    a_post_of_the_future_is_refused,
    the_same_id_again_changes_nothing,
    the_same_id_with_another_content_conflicts,
    the_same_key_again_changes_nothing,
    the_same_key_with_another_content_conflicts,
    a_key_belongs_to_its_author,
    wishes_without_id_or_key_are_all_new,
    ids_that_are_made_rise,
    ids_that_are_made_pass_those_that_were_given,
    delivery_is_decided_by_the_followers_then,
    a_deleted_post_is_gone_for_good,
    the_log_has_no_payload_of_a_deleted_post,
    what_was_never_posted_cannot_be_deleted,
    the_key_of_a_deleted_post_is_not_used_again,
    many_posts_are_answered_in_the_order_asked,
    a_payload_is_kept_byte_for_byte,
    posts_of_extreme_ids,
    posts_and_edges_are_in_one_log,
];

const HOUR_MS: u64 = 3_600_000;

/// What the event at a position says, and when it was.
fn event<S: PostPorts>(subject: &Subject<S>, position: Position) -> (ChangeBody, Timestamp) {
    let change = subject.change_at(position);
    (change.body, change.at)
}

/// A new post on a shard: the store chooses where it is, so that several may be made before one is there.
fn post_on<S: PostPorts>(subject: &Subject<S>, shard: Shard) -> PostWritten {
    let mut posts = (0..1_000).map(|_| subject.register(subject.post_request(1)));
    posts.find(|posted| posted.position.shard == shard).expect("posts come to every shard")
}

fn a_post_is_kept_as_it_was_given<S: PostPorts>(subject: &Subject<S>) {
    let text = r#"{"text":"hello"}"#;
    let created_at = subject.ago(1_234);
    let request = NewPost { created_at: Some(created_at), payload: payload(text), ..subject.named(1, 50) };
    assert_eq!(subject.state(subject.id(50)), None);
    let before = subject.newest_frontier();
    let posted = subject.register(request);
    let post = Post { id: subject.id(50), author: subject.id(1), created_at, payload: payload(text) };
    subject.assert_one_change(&before, posted.position);
    assert_eq!((&posted.post, posted.is_new), (&post, true));
    assert_eq!(subject.state(post.id), Some(PostState::Present(post.clone(), Delivery::Push)));
    assert_eq!(subject.posts_by(1, 10), std::slice::from_ref(&post));
    let body = ChangeBody::Posted { post, delivery: Delivery::Push };
    assert_eq!(event(subject, posted.position), (body, subject.clock.now()));
}

fn a_post_without_a_time_is_made_at_its_event<S: PostPorts>(subject: &Subject<S>) {
    assert_eq!(subject.post(1).created_at, subject.clock.now());
    subject.clock.advance(876);
    let newest = subject.clock.now();
    let posted = subject.register(subject.post_request(1));
    assert_eq!(posted.post.created_at, newest);
    subject.clock.turn_back(HOUR_MS);
    let PostWritten { post, position, .. } = post_on(subject, posted.position.shard);
    assert_eq!(post.created_at, newest, "the time of a shard's events does not go back");
    assert_eq!(event(subject, position), (ChangeBody::Posted { post, delivery: Delivery::Push }, newest));
}

fn the_time_of_a_post_is_not_that_of_its_event<S: PostPorts>(subject: &Subject<S>) {
    let now = subject.clock.now();
    let times = [Timestamp::MIN, subject.ago(1), now, now.plus_millis(1), now.plus_millis(AHEAD_MS_MAX)];
    for created_at in times {
        let posted = subject.register(NewPost { created_at: Some(created_at), ..subject.post_request(1) });
        assert_eq!(posted.post.created_at, created_at);
        assert_eq!(event(subject, posted.position).1, now, "an event of a post made at {created_at}");
    }
    // A post that is ahead of the clock does not move the time of what comes after it.
    assert_eq!(subject.post(1).created_at, now);
    let followed = subject.subscribe(2, 3);
    assert_eq!(event(subject, followed.position).1, now);
}

fn a_post_of_the_future_is_refused<S: PostPorts>(subject: &Subject<S>) {
    subject.post(1);
    let before = subject.newest_frontier();
    for ahead in [1, HOUR_MS, 1 << 50] {
        let input = subject.clock.now().plus_millis(AHEAD_MS_MAX + ahead);
        let request = NewPost { created_at: Some(input), ..subject.keyed(1, "key") };
        for request in [request.clone(), NewPost { id: Some(subject.id(50)), ..request }] {
            match subject.try_register(request) {
                Err(Error::PostInFuture { created_at: reported }) => assert_eq!(reported, input),
                other => panic!("a post of {input} must be refused, not {other:?}"),
            }
        }
    }
    assert_eq!(subject.newest_frontier(), before, "a refusal has no event");
    assert_eq!(subject.state(subject.id(50)), None);
    // Neither the id nor the key is used up.
    assert!(subject.register(NewPost { id: Some(subject.id(50)), ..subject.keyed(1, "key") }).is_new);
}

fn the_same_id_again_changes_nothing<S: PostPorts>(subject: &Subject<S>) {
    let created_at = Some(subject.ago(5));
    let request = NewPost { created_at, payload: payload("1"), ..subject.named(1, 50) };
    let first = subject.register(request.clone());
    let other = subject.register(subject.named(1, 51));
    let before = subject.newest_frontier();
    subject.clock.advance(9 * HOUR_MS);
    let without_time = NewPost { created_at: None, ..request.clone() };
    let with_key = NewPost { idempotency_key: payload("key"), ..request.clone() };
    for again in [request, without_time, with_key] {
        let again = subject.register(again);
        assert_eq!((again.post, again.is_new), (first.post.clone(), false));
        subject.assert_repeated(&before, again.position, first.position);
    }
    // One that named no time, with the time that it got.
    let request = NewPost { created_at: Some(other.post.created_at), ..subject.named(1, 51) };
    assert!(!subject.register(request).is_new);
    // A repetition is one however the clock was turned: it is not made again.
    subject.clock.turn_back(99 * HOUR_MS);
    assert!(!subject.register(NewPost { created_at, payload: payload("1"), ..subject.named(1, 50) }).is_new);
    assert_eq!(subject.newest_frontier(), before);
    assert_eq!(subject.posts_by(1, 10), [other.post, first.post]);
}

fn the_same_id_with_another_content_conflicts<S: PostPorts>(subject: &Subject<S>) {
    let created_at = subject.ago(5);
    let request = NewPost { created_at: Some(created_at), payload: payload("[1]"), ..subject.named(1, 50) };
    let first = subject.register(request.clone()).post;
    let before = subject.newest_frontier();
    let others = [
        NewPost { author: subject.id(2), ..request.clone() },
        NewPost { payload: payload("[2]"), ..request.clone() },
        NewPost { payload: payload("[1] "), ..request.clone() },
        NewPost { payload: None, ..request.clone() },
        NewPost { created_at: Some(created_at.plus_millis(1)), ..request.clone() },
        NewPost { created_at: Some(Timestamp::MIN), ..request },
    ];
    for other in others {
        match subject.try_register(other.clone()) {
            Err(Error::PostConflict { id }) => assert_eq!(id, first.id.to_string()),
            outcome => panic!("{other:?} must conflict with {first:?}, not {outcome:?}"),
        }
    }
    assert_eq!(subject.newest_frontier(), before);
    assert_eq!(subject.state(first.id), Some(PostState::Present(first, Delivery::Push)));
}

fn the_same_key_again_changes_nothing<S: PostPorts>(subject: &Subject<S>) {
    let longest = "k".repeat(255);
    for key in ["key", "ключ", " key", "KEY", &longest] {
        let request = NewPost { payload: payload("{}"), ..subject.keyed(1, key) };
        let first = subject.register(request.clone());
        assert!(first.is_new, "{key:?} is a key of its own");
        subject.clock.advance(HOUR_MS);
        subject.register(subject.post_request(2));
        let before = subject.newest_frontier();
        for created_at in [None, Some(first.post.created_at)] {
            let again = subject.register(NewPost { created_at, ..request.clone() });
            assert_eq!((again.post, again.is_new), (first.post.clone(), false), "{key:?}");
            subject.assert_repeated(&before, again.position, first.position);
        }
        let named = subject.register(NewPost { id: Some(first.post.id), ..request });
        assert_eq!((named.post, named.is_new), (first.post, false), "with the id that it got");
    }
    assert_eq!(subject.posts_by(1, 3).len(), 5);
}

fn the_same_key_with_another_content_conflicts<S: PostPorts>(subject: &Subject<S>) {
    let created_at = subject.ago(5);
    let request = NewPost {
        id: Some(subject.id(50)),
        created_at: Some(created_at),
        payload: payload("1"),
        ..subject.keyed(1, "key")
    };
    let first = subject.register(request.clone());
    let again = subject.register(NewPost { id: None, ..request.clone() });
    assert_eq!((again.post, again.is_new), (first.post, false), "the key is enough");
    subject.register(subject.named(1, 52));
    let before = subject.newest_frontier();
    let others = [
        NewPost { id: None, payload: None, ..request.clone() },
        NewPost { id: None, payload: payload("2"), ..request.clone() },
        NewPost { id: None, created_at: Some(created_at.plus_millis(1)), ..request.clone() },
        // Another post, be it there or not.
        NewPost { id: Some(subject.id(51)), ..request.clone() },
        NewPost { idempotency_key: payload("key"), ..subject.named(1, 52) },
    ];
    for other in others {
        assert_code(subject.try_register(other), ErrorCode::PostConflict);
    }
    assert_eq!(subject.newest_frontier(), before);
    assert_eq!(subject.state(subject.id(51)), None);
}

fn a_key_belongs_to_its_author<S: PostPorts>(subject: &Subject<S>) {
    let of_one = subject.register(NewPost { payload: payload("1"), ..subject.keyed(1, "key") });
    let of_two = subject.register(NewPost { payload: payload("2"), ..subject.keyed(2, "key") });
    assert!(of_two.is_new && of_two.post.id != of_one.post.id);
    let again = subject.register(NewPost { payload: payload("1"), ..subject.keyed(1, "key") });
    assert_eq!((again.post, again.is_new), (of_one.post, false));
    subject.delete(of_two.post.id);
    assert!(!subject.register(NewPost { payload: payload("1"), ..subject.keyed(1, "key") }).is_new);
}

fn wishes_without_id_or_key_are_all_new<S: PostPorts>(subject: &Subject<S>) {
    let posts: Vec<Post> = (0..5).map(|_| subject.post(1)).collect();
    assert_eq!(subject.log_length(), 5);
    let mut newest = posts.clone();
    newest.reverse();
    assert_eq!(subject.posts_by(1, 2), newest, "in one millisecond the highest id is the newest");
}

fn ids_that_are_made_rise<S: PostPorts>(subject: &Subject<S>) {
    let mut newest: [Option<Id>; 2] = [None; 2];
    for number in 0..12 {
        match number % 4 {
            0 => subject.clock.turn_back(HOUR_MS),
            1 => subject.clock.advance(3 * HOUR_MS),
            _ => {}
        }
        // Those of each author, whenever they were made.
        let created_at = (number % 3 == 0).then(|| subject.ago(number * HOUR_MS));
        let id = subject.register(NewPost { created_at, ..subject.post_request(number % 2) }).post.id;
        assert_eq!(id.kind(), subject.scope.id_kind);
        subject.scope.id_kind.require(id).expect("an id that may be asked for");
        let before = newest[number as usize % 2].replace(id);
        assert!(before < Some(id), "{id} after {before:?}");
    }
}

fn ids_that_are_made_pass_those_that_were_given<S: PostPorts>(subject: &Subject<S>) {
    // An id at the end of the range leaves room for those that are made.
    let highest = *subject.extreme_ids().last().expect("there are some");
    subject.register(NewPost { id: Some(highest), ..subject.post_request(1) });
    let mut generated = subject.post(1).id;
    for _ in 0..3 {
        // Somebody takes the ids that come next.
        for distance in 1..=3 {
            let id = higher(generated, distance);
            assert!(subject.register(NewPost { id: Some(id), ..subject.post_request(2) }).is_new);
        }
        let next = subject.post(1).id;
        assert!(next > generated && next < highest, "{next} after {generated}");
        generated = next;
    }
    assert_eq!((subject.posts_by(1, 5).len(), subject.posts_by(2, 5).len()), (5, 9));
}

fn delivery_is_decided_by_the_followers_then<S: PostPorts>(subject: &Subject<S>) {
    let mut expected = Vec::new();
    let mut post = |delivery| {
        let PostWritten { post, position, .. } = subject.register(subject.post_request(0));
        let body = ChangeBody::Posted { post: post.clone(), delivery };
        assert_eq!(event(subject, position).0, body);
        expected.push(PostState::Present(post, delivery));
    };
    post(Delivery::Push);
    for follower in 1..=FAN_OUT_THRESHOLD + 1 {
        subject.subscribe(follower, 0);
        subject.subscribe(follower, 0);
        post(if follower < FAN_OUT_THRESHOLD { Delivery::Push } else { Delivery::Pull });
    }
    for follower in 1..=FAN_OUT_THRESHOLD + 1 {
        subject.unsubscribe(follower, 0);
        subject.unsubscribe(follower, 0);
        let left = FAN_OUT_THRESHOLD + 1 - follower;
        post(if left < FAN_OUT_THRESHOLD { Delivery::Push } else { Delivery::Pull });
    }
    let likes = subject.commands(&[follow(1, 0), follow(2, 0), follow(3, 0)]);
    subject.try_write(EdgeKind::Like, &likes, NO_LIMIT).expect("edges of another kind");
    post(Delivery::Push);
    for state in expected {
        let PostState::Present(post, _) = &state else { unreachable!("none is deleted") };
        assert_eq!(subject.state(post.id), Some(state.clone()), "it never changes");
    }
}

fn a_deleted_post_is_gone_for_good<S: PostPorts>(subject: &Subject<S>) {
    let created_at = subject.ago(HOUR_MS);
    let request = NewPost { created_at: Some(created_at), payload: payload("1"), ..subject.named(1, 50) };
    let id = subject.register(request.clone()).post.id;
    let other = subject.post(1);
    let before = subject.newest_frontier();
    let deleted = subject.delete(id);
    assert!(deleted.changed);
    subject.assert_one_change(&before, deleted.position);
    let body = ChangeBody::PostDeleted { id, author: subject.id(1), created_at };
    assert_eq!(event(subject, deleted.position), (body, subject.clock.now()));
    let gone = Some(PostState::Deleted { author: subject.id(1) });
    assert_eq!(subject.state(id), gone);
    assert_eq!(subject.posts_by(1, 1), [other]);

    let before = subject.newest_frontier();
    let again = subject.delete(id);
    assert!(!again.changed);
    subject.assert_repeated(&before, again.position, deleted.position);
    for again in [request.clone(), NewPost { author: subject.id(2), payload: None, ..request }] {
        match subject.try_register(again) {
            Err(Error::PostDeleted { id: reported }) => assert_eq!(reported, id.to_string()),
            outcome => panic!("the id of a deleted post is not used again, but {outcome:?}"),
        }
    }
    assert_eq!((subject.newest_frontier(), subject.state(id)), (before, gone));
}

fn the_log_has_no_payload_of_a_deleted_post<S: PostPorts>(subject: &Subject<S>) {
    let text = |number: u64| payload(&format!("{{\"secret\":{number}}}"));
    let posts: Vec<Post> = (50..53)
        .map(|id| subject.register(NewPost { payload: text(id), ..subject.named(1, id) }).post)
        .collect();
    let reported = || {
        let posted = subject.changes().into_iter().filter_map(|change| match change.body {
            ChangeBody::Posted { post, .. } => Some(post),
            _ => None,
        });
        let mut posted: Vec<Post> = posted.collect();
        posted.sort_by_key(|post| post.id);
        posted
    };
    assert_eq!(reported(), posts);
    subject.delete(posts[1].id);
    let without = Post { payload: None, ..posts[1].clone() };
    assert_eq!(
        reported(),
        [posts[0].clone(), without, posts[2].clone()],
        "its event stays, without the payload"
    );
    let dump = format!("{:?}", subject.changes());
    assert!(!dump.contains("51}"), "{dump}");
}

fn what_was_never_posted_cannot_be_deleted<S: PostPorts>(subject: &Subject<S>) {
    subject.post(1);
    let before = subject.newest_frontier();
    for id in subject.extreme_ids().into_iter().chain([subject.id(1)]) {
        assert_code(block_on(subject.store().delete_post(id)), ErrorCode::NotFound);
    }
    assert_eq!(subject.newest_frontier(), before);
    assert!(subject.register(subject.named(1, 1)).is_new, "its id may still be used");
}

fn the_key_of_a_deleted_post_is_not_used_again<S: PostPorts>(subject: &Subject<S>) {
    let post = subject.register(subject.keyed(1, "key")).post;
    subject.delete(post.id);
    let before = subject.newest_frontier();
    for request in [subject.keyed(1, "key"), NewPost { payload: payload("2"), ..subject.keyed(1, "key") }] {
        match subject.try_register(request) {
            Err(Error::PostDeleted { id }) => assert_eq!(id, post.id.to_string()),
            outcome => panic!("the post of this key was deleted, but {outcome:?}"),
        }
    }
    assert_eq!(subject.newest_frontier(), before);
    assert!(subject.register(subject.keyed(1, "other")).is_new);
}

fn many_posts_are_answered_in_the_order_asked<S: PostPorts>(subject: &Subject<S>) {
    for id in [3, 1, 4, 2] {
        subject.register(subject.named(id, id + 10));
    }
    subject.delete(subject.id(12));
    let asked = [14, 12, 99, 11, 14, 13, 0];
    let states = block_on(subject.store().posts(&subject.ids(asked))).unwrap();
    assert_eq!(states.len(), asked.len());
    for (number, state) in asked.into_iter().zip(states) {
        match (number, state) {
            (99 | 0, None) => {}
            (12, Some(PostState::Deleted { author })) => assert_eq!(author, subject.id(2)),
            (11 | 13 | 14, Some(PostState::Present(post, _))) => {
                assert_eq!((post.id, post.author), (subject.id(number), subject.id(number - 10)));
            }
            (number, state) => panic!("post {number} is {state:?}"),
        }
    }
    assert_eq!(block_on(subject.store().posts(&[])).unwrap(), []);
}

fn a_payload_is_kept_byte_for_byte<S: PostPorts>(subject: &Subject<S>) {
    let long = format!("\"{}\"", "ä".repeat(2_047));
    assert_eq!(long.len(), 4_096);
    let texts =
        [None, payload(""), payload(" {\"a\" : 1.0}\n"), payload("\"\\u0000\u{10ffff}\""), payload(&long)];
    for (text, id) in texts.into_iter().zip(50..) {
        let request = NewPost { payload: text.clone(), ..subject.named(1, id) };
        assert_eq!(subject.register(request.clone()).post.payload, text);
        assert!(!subject.register(request).is_new);
        assert_eq!(subject.posts_by(1, 1)[0].payload, text);
        let Some(PostState::Present(post, _)) = subject.state(subject.id(id)) else {
            panic!("post {id} is there")
        };
        assert_eq!(post.payload, text);
    }
}

fn posts_of_extreme_ids<S: PostPorts>(subject: &Subject<S>) {
    let ids = subject.extreme_ids();
    // Each is the id of a user and of another user's post.
    for (index, &id) in ids.iter().enumerate() {
        let author = ids[(index + 1) % ids.len()];
        let request = NewPost { id: Some(id), author, ..subject.post_request(0) };
        assert!(subject.register(request).is_new);
    }
    for (index, &author) in ids.iter().enumerate() {
        let id = ids[(index + ids.len() - 1) % ids.len()];
        let found = block_on(subject.store().posts_by(author, None, 5)).unwrap();
        assert_eq!(found.iter().map(|post| (post.id, post.author)).collect::<Vec<_>>(), [(id, author)]);
    }
    let lowest = match subject.scope.id_kind {
        IdKind::Integer => Id::Integer(0),
        IdKind::Uuid => Id::Uuid(0),
    };
    assert!(subject.delete(lowest).changed);
}

fn posts_and_edges_are_in_one_log<S: PostPorts>(subject: &Subject<S>) {
    let followed = subject.follow(1, 2).position;
    let shard = followed.shard;
    let post = post_on(subject, shard);
    let unfollowed = subject.unfollow(1, 2).position;
    // After an unfollow no change of its shard is earlier than the removed edge plus 1 ms, posts like edges.
    let later = subject.clock.now().plus_millis(1);
    let second = post_on(subject, shard);
    assert_eq!(second.post.created_at, later);
    let deleted = subject.delete(post.post.id).position;
    let expected = [followed, post.position, unfollowed, second.position, deleted];
    assert_eq!(expected, [1, 2, 3, 4, 5].map(|sequence| Sequence(sequence).on(shard)));
    let changes: Vec<_> =
        subject.changes().into_iter().filter(|change| change.position.shard == shard).collect();
    assert_eq!(changes.iter().map(|change| change.position).collect::<Vec<_>>(), expected);
    assert!(changes.is_sorted_by_key(|change| change.at), "time in the log does not go back: {changes:?}");
    subject.clock.turn_back(HOUR_MS);
    let followed = subject.follow(1, 3).position;
    assert_eq!(event(subject, followed).1, later, "nor does an edge's after a post");
}
