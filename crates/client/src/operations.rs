//! The operations of the REST interface, defined once for both clients.

use kinfolk_api::{
    Changes, CheckRequest, CheckResults, Comment, CommentEdit, CommentId, CommentNode, CommentRemoval,
    CommentVersion, CountedPage, Counts, CountsList, Follows, Id, ListEntry, NewComment, NewPost, Page, Post,
    PostWithComments, Relationship, Relationships, Status, Suggestions, WriteOutcome, Written,
};
use ureq::http::Method;

use crate::call::Request;
use crate::retry::Repeat;
use crate::{CommentOrder, Result, TreeShape, blocking, listing};

/// Defines operations of both clients. `fn` sends a call; `list fn` returns a list to be read page by page.
macro_rules! operations {
    (@each $(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $call:block
    )*) => {
        impl crate::Client {
            $(
                $(#[$meta])*
                pub async fn $name(&self, $($argument: $type),*) -> Result<$result> {
                    self.send($call).await
                }
            )*
        }

        impl blocking::Client {
            $(
                $(#[$meta])*
                pub fn $name(&self, $($argument: $type),*) -> Result<$result> {
                    self.send($call)
                }
            )*
        }
    };
    (@lists $(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $page:ty $request:block
    )*) => {
        impl crate::Client {
            $(
                $(#[$meta])*
                pub fn $name(&self, $($argument: $type),*) -> listing::List<$page> {
                    listing::List::new(self.clone(), $request)
                }
            )*
        }

        impl blocking::Client {
            $(
                $(#[$meta])*
                pub fn $name(&self, $($argument: $type),*) -> blocking::List<$page> {
                    blocking::List::new(self.clone(), $request)
                }
            )*
        }
    };
}

operations! { @each
    /// Makes the actor follow a user. Following again changes nothing.
    fn follow(followee: impl Into<Id>) -> WriteOutcome {
        Request::write(Method::POST, format!("/v1/users/{}/follow", followee.into())).returning_outcome()
    }

    /// Makes the actor unfollow a user. Unfollowing again changes nothing.
    fn unfollow(followee: impl Into<Id>) -> WriteOutcome {
        Request::write(Method::DELETE, format!("/v1/users/{}/follow", followee.into())).returning_outcome()
    }

    /// Drops a follower of a user, who must be the actor.
    fn remove_follower(user: impl Into<Id>, follower: impl Into<Id>) -> WriteOutcome {
        let path = format!("/v1/users/{}/followers/{}", user.into(), follower.into());
        Request::write(Method::DELETE, path).returning_outcome()
    }

    /// Whether a user follows another, and since when.
    fn follows(follower: impl Into<Id>, followee: impl Into<Id>) -> Follows {
        Request::get(format!("/v1/users/{}/following/{}", follower.into(), followee.into())).returning()
    }

    /// For each pair of a follower and a followee, whether the edge exists; up to 1,000 pairs.
    fn check(pairs: impl IntoIterator<Item = (impl Into<Id>, impl Into<Id>)>) -> Vec<bool> {
        let pairs = pairs.into_iter().map(|(follower, followee)| [follower.into(), followee.into()]);
        // It is a read, though it has a body.
        let request = Request { method: Method::POST, ..Request::get("/v1/check") };
        request
            .json(&CheckRequest { pairs: pairs.collect() })
            .reading(|response| response.json::<CheckResults>().map(|checked| checked.results))
    }

    /// A user's relationships to up to 100 others, in the order of the request.
    fn relationships(
        user: impl Into<Id>,
        others: impl IntoIterator<Item = impl Into<Id>>,
    ) -> Vec<Relationship> {
        let request = Request::get(format!("/v1/users/{}/relationships", user.into()));
        with_ids(request, others)
            .reading(|response| response.json::<Relationships>().map(|found| found.items))
    }

    /// How many users a user follows and is followed by.
    fn counts(user: impl Into<Id>) -> Counts {
        Request::get(format!("/v1/users/{}/counts", user.into())).returning()
    }

    /// The counts of up to 100 users, in the order of the request.
    fn counts_of(users: impl IntoIterator<Item = impl Into<Id>>) -> Vec<Counts> {
        with_ids(Request::get("/v1/counts"), users)
            .reading(|response| response.json::<CountsList>().map(|found| found.items))
    }

    /// Suggestions to a user, the best first: 1 to 100 of them.
    fn suggestions(user: impl Into<Id>, limit: usize) -> Suggestions {
        Request::get(format!("/v1/users/{}/suggestions", user.into())).query("limit", limit).returning()
    }

    /// Dismisses a suggestion to a user, who must be the actor: the candidate is not suggested again.
    fn dismiss(user: impl Into<Id>, candidate: impl Into<Id>) -> WriteOutcome {
        let path = format!("/v1/users/{}/suggestions/{}", user.into(), candidate.into());
        Request::write(Method::DELETE, path).returning_outcome()
    }

    /// Registers a post. The author is the actor unless the post names another, as services may.
    ///
    /// A post with an id or an idempotency key can be sent again safely: the response is the first one's, with `changed` false.
    /// Without either, the client does not repeat the request once it may have been applied.
    fn register_post(post: &NewPost, idempotency_key: Option<&str>) -> Written<Post> {
        let request = Request::write(Method::POST, "/v1/posts").json(post);
        match idempotency_key {
            Some(key) => request.idempotency_key(key),
            None if post.id.is_some() => request,
            None => request.repeat(Repeat::OnlyUnapplied),
        }
        .returning_written()
    }

    /// A post, with the state of its comments.
    fn post(id: impl Into<Id>) -> PostWithComments {
        Request::get(format!("/v1/posts/{}", id.into())).returning()
    }

    /// Deletes a post of the actor. Deleting it again changes nothing.
    fn delete_post(id: impl Into<Id>) -> WriteOutcome {
        Request::write(Method::DELETE, format!("/v1/posts/{}", id.into())).returning_outcome()
    }

    /// Writes a comment of the actor on a post.
    ///
    /// The same idempotency key with the same comment returns the first result, with `changed` false. Without a key the client
    /// generates one, so that its own retries never write twice.
    fn write_comment(
        post: impl Into<Id>,
        comment: &NewComment,
        idempotency_key: Option<&str>,
    ) -> Written<Comment> {
        let key = idempotency_key.map_or_else(unique_key, |key| Ok(key.to_owned()))?;
        let path = format!("/v1/posts/{}/comments", post.into());
        Request::write(Method::POST, path).json(comment).idempotency_key(key).returning_written()
    }

    /// Edits a comment of the actor. It fails with `version_conflict` unless `version` is the current one, and is not repeated
    /// once it may have been applied.
    fn edit_comment(id: impl Into<CommentId>, version: u32, body: impl Into<String>) -> Written<Comment> {
        Request::write(Method::PATCH, format!("/v1/comments/{}", id.into()))
            .header(IF_MATCH, format!("\"{version}\""))
            .json(&CommentEdit { body: body.into() })
            .repeat(Repeat::OnlyUnapplied)
            .returning_written()
    }

    /// Deletes a comment of the actor. A tombstone keeps its position. Deleting it again changes nothing.
    fn delete_comment(id: impl Into<CommentId>) -> WriteOutcome {
        Request::write(Method::DELETE, format!("/v1/comments/{}", id.into())).returning_outcome()
    }

    /// Removes a comment as a moderator, with a reason for other moderators.
    fn remove_comment(id: impl Into<CommentId>, reason: impl Into<String>) -> WriteOutcome {
        Request::write(Method::POST, format!("/v1/comments/{}/remove", id.into()))
            .json(&CommentRemoval { reason: reason.into() })
            .returning_outcome()
    }

    /// Erases the body of a comment for good, as a moderator.
    fn purge_comment(id: impl Into<CommentId>) -> WriteOutcome {
        Request::write(Method::POST, format!("/v1/comments/{}/purge", id.into())).returning_outcome()
    }

    /// Refuses new comments on a post from now on, as a moderator.
    fn lock_comments(post: impl Into<Id>) -> WriteOutcome {
        Request::write(Method::PUT, format!("/v1/posts/{}/comments/lock", post.into())).returning_outcome()
    }

    /// Accepts new comments on a post again, as a moderator.
    fn unlock_comments(post: impl Into<Id>) -> WriteOutcome {
        Request::write(Method::DELETE, format!("/v1/posts/{}/comments/lock", post.into())).returning_outcome()
    }

    /// A comment, or its tombstone.
    fn comment(id: impl Into<CommentId>) -> Comment {
        Request::get(format!("/v1/comments/{}", id.into())).returning()
    }

    /// A page of the change log after a token, or from the oldest change that is kept. Continue with its `next`.
    fn changes(after: Option<&str>, limit: usize) -> Changes {
        Request::get("/v1/changes").query("limit", limit).query_optional("after", after).returning()
    }

    /// Whether the server is ready to serve.
    fn readiness() -> Status {
        Request::get("/readyz").returning()
    }
}

operations! { @lists
    /// The followees of a user, newest first.
    fn following(user: impl Into<Id>) -> Page<ListEntry> {
        Request::get(format!("/v1/users/{}/following", user.into()))
    }

    /// The followers of a user, newest first.
    fn followers(user: impl Into<Id>) -> Page<ListEntry> {
        Request::get(format!("/v1/users/{}/followers", user.into()))
    }

    /// The users who follow a user and are followed back, newest followers first.
    fn friends(user: impl Into<Id>) -> Page<ListEntry> {
        Request::get(format!("/v1/users/{}/friends", user.into()))
    }

    /// The common followees of up to 10 users, by id.
    fn common(users: impl IntoIterator<Item = impl Into<Id>>) -> CountedPage {
        with_ids(Request::get("/v1/common"), users)
    }

    /// The followers of a user among the viewer's followees, by id.
    fn known_followers(viewer: impl Into<Id>, user: impl Into<Id>) -> CountedPage {
        Request::get(format!("/v1/users/{}/known-followers", user.into())).query("viewer", viewer.into())
    }

    /// A user's own posts, newest first.
    fn posts(user: impl Into<Id>) -> Page<Post> {
        Request::get(format!("/v1/users/{}/posts", user.into()))
    }

    /// A user's home feed: the posts of its followees, newest first.
    fn feed(user: impl Into<Id>) -> Page<Post> {
        Request::get(format!("/v1/users/{}/feed", user.into()))
    }

    /// The comments on a post.
    fn comments(post: impl Into<Id>, order: CommentOrder) -> Page<Comment> {
        Request::get(format!("/v1/posts/{}/comments", post.into())).query("order", order.name())
    }

    /// The comments on a post as a tree. The `next` of a comment is a cursor of this list that continues with its replies.
    fn comment_tree(post: impl Into<Id>, shape: TreeShape) -> Page<CommentNode> {
        let TreeShape { depth, replies } = shape;
        Request::get(format!("/v1/posts/{}/comments/tree", post.into()))
            .query("depth", depth)
            .query("replies", replies)
    }

    /// A user's active comments, newest first.
    fn comments_by(user: impl Into<Id>) -> Page<Comment> {
        Request::get(format!("/v1/users/{}/comments", user.into()))
    }

    /// The versions of a comment, oldest first.
    fn comment_history(id: impl Into<CommentId>) -> Page<CommentVersion> {
        Request::get(format!("/v1/comments/{}/history", id.into()))
    }
}

const IF_MATCH: &str = "if-match";

fn with_ids(request: Request, ids: impl IntoIterator<Item = impl Into<Id>>) -> Request {
    ids.into_iter().fold(request, |request, id| request.query("id", id.into()))
}

/// An idempotency key that no other write has.
fn unique_key() -> Result<String> {
    let mut bytes = [0; 16];
    let failed = |error| crate::Error::Configuration(format!("no random numbers are available: {error}"));
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}
