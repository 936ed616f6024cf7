//! Every operation against the real server, blocking and async.

use kinfolk_client::api::{Id, NewComment, NewPost, Payload};
use kinfolk_client::{CommentOrder, Error, ErrorCode, TreeShape};
use kinfolk_core::comments::CommentStatus;

use crate::server::Server;

fn id(number: u64) -> Id {
    number.into()
}

#[test]
fn edges() {
    let server = Server::start();
    let client = server.blocking();
    let (one, two) = (client.acting_as(1), client.acting_as(2));
    assert!(one.follow(2).unwrap().changed);
    assert!(!one.follow(2).unwrap().changed);
    assert!(
        two.follow(1).unwrap().changed && two.follow(3).unwrap().changed && one.follow(3).unwrap().changed
    );
    let follows = client.follows(1, 2).unwrap();
    assert!(follows.following && follows.since.is_some());
    assert_eq!(client.check([(1, 2), (3, 1)]).unwrap(), [true, false]);
    let relationships = client.relationships(1, [2, 3]).unwrap();
    assert_eq!([0, 1].map(|at: usize| relationships[at].mutual), [true, false]);
    let counts = client.counts(1).unwrap();
    assert_eq!((counts.following, counts.followers), (2, 1));
    assert_eq!(client.counts_of([1, 2]).unwrap()[0], counts);
    assert_eq!(client.friends(1).page().unwrap().items[0].id, id(2));
    let common = client.common([1, 2]).page().unwrap();
    assert_eq!((common.count, common.items[0].id), (1, id(3)));
    assert_eq!(client.known_followers(1, 3).page().unwrap().items[0].id, id(2));
    assert!(client.acting_as(3).remove_follower(3, 1).unwrap().changed);
    assert!(one.unfollow(2).unwrap().changed);
    assert!(!client.follows(1, 2).unwrap().following);
    assert_eq!(client.readiness().unwrap().status, "ready");
}

#[test]
fn refusals_have_their_code() {
    let server = Server::start();
    let client = server.blocking();
    let refused = client.acting_as(1).follow(1).unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::SelfFollow));
    assert_eq!(refused.problem().unwrap().status, 422);
    assert_eq!(client.follow(1).unwrap_err().code(), Some(ErrorCode::ActorRequired));
    assert_eq!(client.post(9).unwrap_err().code(), Some(ErrorCode::NotFound));
    assert_eq!(client.followers(9).limit(0).page().unwrap_err().code(), Some(ErrorCode::LimitOutOfRange));
    for url in ["nonsense", "ftp://localhost", "http://", "http://localhost?a=b"] {
        let refused = kinfolk_client::Client::new(url).unwrap_err();
        assert!(matches!(refused, Error::Configuration(_)), "{url}: {refused:?}");
    }
}

#[test]
fn suggestions_posts_and_feeds() {
    let server = Server::start();
    let client = server.blocking();
    for (follower, followee) in [(1, 2), (2, 3)] {
        client.acting_as(follower).follow(followee).unwrap();
    }
    let suggestions = client.suggestions(1, 10).unwrap();
    assert_eq!((suggestions.items[0].id, suggestions.items[0].mutual_count), (id(3), 1));
    assert!(client.acting_as(1).dismiss(1, 3).unwrap().changed);
    assert!(client.suggestions(1, 10).unwrap().items.is_empty());

    let author = client.acting_as(2);
    let payload = Some(Payload::from(r#"{"b":1.10}"#.to_owned()));
    let post = NewPost { id: Some(id(70)), payload, ..NewPost::default() };
    let written = author.register_post(&post, None).unwrap();
    assert!(written.changed && !author.register_post(&post, None).unwrap().changed);
    assert_eq!(client.feed(1).page().unwrap().items, std::slice::from_ref(&written.item));
    assert_eq!(client.posts(2).page().unwrap().items, [written.item]);
    let keyed = author.register_post(&NewPost::default(), Some("a key")).unwrap();
    assert_eq!(author.register_post(&NewPost::default(), Some("a key")).unwrap().item, keyed.item);
    let found = client.post(70).unwrap();
    assert_eq!((found.comment_count, found.payload.unwrap().as_str()), (0, r#"{"b":1.10}"#));
    assert!(author.delete_post(70).unwrap().changed);
    assert_eq!(client.post(70).unwrap_err().code(), Some(ErrorCode::NotFound));
}

#[test]
fn comments() {
    let server = Server::start();
    server.run(async |client| {
        let author = client.acting_as(1);
        author.register_post(&NewPost { id: Some(id(70)), ..NewPost::default() }, None).await.unwrap();
        let comment = |body: &str, reply_to| NewComment { body: body.to_owned(), reply_to };
        let first = author.write_comment(70, &comment("one", None), Some("key")).await.unwrap();
        assert!(first.changed && first.item.post == Some(id(70)));
        let again = author.write_comment(70, &comment("one", None), Some("key")).await.unwrap();
        assert!(!again.changed && again.item == first.item);
        let first = first.item.id;
        let reply = author.write_comment(70, &comment("two", Some(first)), None).await.unwrap().item;
        let edited = author.edit_comment(first, 1, "one, edited").await.unwrap().item;
        assert_eq!((edited.version, edited.body.as_deref()), (2, Some("one, edited")));
        let conflict = author.edit_comment(first, 1, "lost").await.unwrap_err();
        assert_eq!(conflict.code(), Some(ErrorCode::VersionConflict));
        assert_eq!(client.comment(first).await.unwrap().reply_count, 1);
        assert_eq!(client.comment_history(first).page().await.unwrap().items.len(), 2);
        assert_eq!(client.comments_by(1).page().await.unwrap().items.len(), 2);
        let newest = client.comments(70, CommentOrder::Newest).page().await.unwrap();
        assert_eq!(newest.items[0].id, reply.id);
        let tree = client.comment_tree(70, TreeShape::default()).page().await.unwrap();
        assert_eq!(tree.items[0].replies[0].comment.id, reply.id);

        assert!(author.delete_comment(reply.id).await.unwrap().changed);
        assert!(client.remove_comment(first, "spam").await.unwrap().changed);
        let removed = client.comment(first).await.unwrap();
        assert_eq!((removed.status, removed.reason.as_deref()), (CommentStatus::Removed, Some("spam")));
        assert!(client.purge_comment(first).await.unwrap().changed);
        assert!(client.lock_comments(70).await.unwrap().changed);
        let locked = author.write_comment(70, &comment("three", None), None).await.unwrap_err();
        assert_eq!(locked.code(), Some(ErrorCode::ThreadLocked));
        assert!(client.unlock_comments(70).await.unwrap().changed);
    });
}
