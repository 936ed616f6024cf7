//! `UNFOLLOW follower followee` and `SREM following:FOLLOWER followee [followee …]`: makes a user unfollow others.

use kinfolk_core::graph::EdgeAction;

use super::super::writes::EdgeReply;
use super::follow::parse;
use super::prelude::*;

/// Replies the consistency token.
pub(crate) const fn unfollow<S: Store>() -> Command<S> {
    Command {
        name: "unfollow",
        summary: "makes a user unfollow another; replies the consistency token",
        syntax: "follower followee",
        example: &["7", "8"],
        arity: 3,
        operation: Operation::Unfollow,
        ..Command::write(ActorIn::Id, |actor, request| {
            parse(EdgeAction::Unfollow, EdgeReply::Token, actor, request)
        })
    }
}

/// Replies how many edges were removed.
pub(crate) const fn srem<S: Store>() -> Command<S> {
    Command {
        name: "srem",
        summary: "makes a user unfollow others; replies how many were followed",
        syntax: "key member [member …]",
        complexity: "O(N) where N is the number of members",
        example: &["following:7", "8"],
        arity: -3,
        keys: Keys::ONE,
        operation: Operation::Unfollow,
        ..Command::write(ActorIn::Key, |actor, request| {
            parse(EdgeAction::Unfollow, EdgeReply::Count, actor, request)
        })
    }
}
