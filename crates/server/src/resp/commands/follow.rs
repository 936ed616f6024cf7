//! `FOLLOW follower followee` and `SADD following:FOLLOWER followee [followee …]`: makes a user follow others.

use kinfolk_core::graph::{EdgeAction, FollowerChanges, FollowerCommand};

use super::super::writes::{Change, EdgeReply};
use super::prelude::*;

/// Replies the consistency token.
pub(crate) const fn follow<S: Store>() -> Command<S> {
    Command {
        name: "follow",
        summary: "makes a user follow another; replies the consistency token",
        syntax: "follower followee",
        example: &["7", "8"],
        arity: 3,
        operation: Operation::Follow,
        ..Command::write(ActorIn::Id, |actor, request| {
            parse(EdgeAction::Follow, EdgeReply::Token, actor, request)
        })
    }
}

/// Replies how many edges are new.
pub(crate) const fn sadd<S: Store>() -> Command<S> {
    Command {
        name: "sadd",
        summary: "makes a user follow others; replies how many are new",
        syntax: "key member [member …]",
        complexity: "O(N) where N is the number of members",
        example: &["following:7", "8"],
        arity: -3,
        keys: Keys::ONE,
        operation: Operation::Follow,
        ..Command::write(ActorIn::Key, |actor, request| {
            parse(EdgeAction::Follow, EdgeReply::Count, actor, request)
        })
    }
}

/// The same action on every user from the second argument on.
pub(super) fn parse<S: Store>(
    action: EdgeAction,
    reply: EdgeReply,
    actor: Actor,
    request: &Request<'_, S>,
) -> Result<Change> {
    let follower = actor.id();
    let command = |followee: Result<_>| Ok(FollowerCommand { action, followee: followee? });
    let commands = request.ids(2).map(command).collect::<Result<_>>()?;
    let changes = FollowerChanges { follower, commands };
    // The graph requires it too, but after the actor was charged, and in a transaction for all commands of the follower.
    request.graph().require_valid(&changes)?;
    Ok(Change::Edges { reply, changes })
}
