//! Lists over several pages.

use futures_util::TryStreamExt;
use kinfolk_client::api::Id;

use crate::server::Server;

#[test]
fn all_entries_of_all_pages_come_in_order() {
    let server = Server::start();
    let client = server.blocking();
    for follower in 2..25 {
        client.acting_as(follower).follow(1).unwrap();
    }
    let expected: Vec<Id> = (2..25_u64).rev().map(Id::from).collect();
    let followers = client.followers(1).limit(5).into_iter();
    let ids: Vec<Id> = followers.map(|entry| entry.unwrap().id).collect();
    assert_eq!(ids, expected);

    let first = client.followers(1).limit(5).page().unwrap();
    let rest = client.followers(1).limit(100).cursor(first.next.unwrap()).page().unwrap();
    assert_eq!((first.items.len(), rest.items.len(), rest.next), (5, 18, None));

    server.run(async |client| {
        let entries: Vec<_> = client.followers(1).limit(7).items().try_collect().await.unwrap();
        assert_eq!(entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>(), expected);
        let none: Vec<_> = client.following(1).items().try_collect().await.unwrap();
        assert!(none.is_empty());
        let members: Vec<_> = client.common([2, 3]).limit(1).items().try_collect().await.unwrap();
        assert_eq!(members.len(), 1);
    });
}

#[test]
fn an_error_ends_the_list() {
    let server = Server::start();
    let mut entries = server.blocking().followers(1).cursor("nonsense").into_iter();
    assert!(entries.next().unwrap().is_err());
    assert!(entries.next().is_none());
}
