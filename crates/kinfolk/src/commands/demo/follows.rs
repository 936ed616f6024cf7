//! The recent follows, unfollows and dismissals of the demo: the fan gets friends, and the change log one of each.

use anyhow::Result;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, FollowerChanges, FollowerCommand};
use kinfolk_core::{Frontier, Id};

use super::SHOWN;
use super::cast::Cast;
use crate::client::LocalGraph;
use crate::commands::KIND;

/// How many of the fan's followees follow it back.
const FRIENDS: usize = 6;
/// How many others follow the fan, the first of them only for a moment.
const FOLLOWERS: usize = 3;
/// How many users the fan follows.
const FOLLOWEES: usize = 2;
/// How many suggestions the fan dismisses.
const DISMISSED: usize = 4;

/// Writes all of them.
pub(super) fn write(open: &LocalGraph, cast: &Cast) -> Result<()> {
    let changes =
        commands(cast).into_iter().map(|EdgeCommand { action, edge: Edge { follower, followee } }| {
            FollowerChanges { follower, commands: [FollowerCommand { action, followee }].into() }
        });
    for result in open.run(open.graph.apply(KIND, changes.collect())) {
        result?;
    }
    dismiss(open, cast.fan)
}

fn commands(cast: &Cast) -> Vec<EdgeCommand> {
    let (fan, crowd) = (cast.fan, || cast.crowd.iter().copied());
    let command = |action, follower, followee| EdgeCommand { action, edge: Edge { follower, followee } };
    let follow = |follower, followee| command(EdgeAction::Follow, follower, followee);
    let unfollow = |follower, followee| command(EdgeAction::Unfollow, follower, followee);

    let mut commands: Vec<EdgeCommand> =
        cast.authors().take(FRIENDS).map(|author| follow(author, fan)).collect();
    commands.extend(crowd().take(FOLLOWERS).map(|user| follow(user, fan)));
    commands.extend(crowd().take(1).map(|user| unfollow(user, fan)));
    commands.extend(cast.unfollowed.iter().map(|&user| unfollow(fan, user)));
    commands.extend(crowd().skip(FOLLOWERS).take(FOLLOWEES).map(|user| follow(fan, user)));
    // The fan may be its only author.
    commands.retain(|EdgeCommand { edge, .. }| edge.follower != edge.followee);
    commands
}

/// Dismisses suggestions for the fan, except those that are shown. A small graph has few, and half of them stay.
fn dismiss(open: &LocalGraph, fan: Id) -> Result<()> {
    let suggestions = open.suggestions()?;
    let found = open.run(suggestions.read(fan, SHOWN + DISMISSED, Frontier::EMPTY))?.items;
    for suggestion in found.iter().skip(SHOWN.min(found.len() / 2)) {
        open.run(suggestions.dismiss(fan, suggestion.id))?;
    }
    Ok(())
}
