//! Commands of any followers as requests, one for each follower.

use std::collections::HashMap;

use kinfolk_core::graph::{EdgeCommand, EdgeStore, FollowerCommand, Receipt, WriteRequest};
use kinfolk_core::{EdgeKind, Position, Result};

use crate::threads::block_on;
use crate::users::START;

/// The requests of some commands: one for each follower, in the order in which followers come, each with the places of its
/// commands.
pub(crate) fn requests(
    kind: EdgeKind,
    commands: &[EdgeCommand],
    following_limit: u32,
) -> Vec<(WriteRequest, Vec<usize>)> {
    let mut requests: Vec<(WriteRequest, Vec<usize>)> = Vec::new();
    let mut of_followers = HashMap::new();
    for (place, EdgeCommand { action, edge }) in commands.iter().enumerate() {
        let at = *of_followers.entry(edge.follower).or_insert_with(|| {
            let (follower, commands) = (edge.follower, Vec::new());
            requests.push((
                WriteRequest { kind, follower, commands: commands.into(), following_limit },
                Vec::new(),
            ));
            requests.len() - 1
        });
        let (request, places) = &mut requests[at];
        request.commands.push(FollowerCommand { action: *action, followee: edge.followee });
        places.push(place);
    }
    requests
}

/// Writes commands, those of each follower whole. Returns the first refusal, or for each command whether it changed anything,
/// with the last position.
pub fn write_commands<S: EdgeStore>(
    store: &S,
    kind: EdgeKind,
    commands: &[EdgeCommand],
    following_limit: u32,
) -> Result<Receipt> {
    write_with_positions(store, kind, commands, following_limit).map(|(receipt, _)| receipt)
}

/// As [`write_commands`], with all positions.
pub(crate) fn write_with_positions<S: EdgeStore>(
    store: &S,
    kind: EdgeKind,
    commands: &[EdgeCommand],
    following_limit: u32,
) -> Result<(Receipt, Vec<Position>)> {
    let (requests, places): (Vec<_>, Vec<_>) = requests(kind, commands, following_limit).into_iter().unzip();
    let results = block_on(store.write(requests));
    assert_eq!(results.len(), places.len(), "there is a result for each request");
    let (mut changed, mut positions) = (vec![false; commands.len()], Vec::new());
    for (result, places) in results.into_iter().zip(places) {
        let receipt = result?;
        assert_eq!(
            receipt.changed.len(),
            places.len(),
            "a receipt says of each command whether it changed anything"
        );
        places.into_iter().zip(receipt.changed).for_each(|(place, one)| changed[place] = one);
        positions.push(receipt.position);
    }
    Ok((Receipt { position: positions.last().copied().unwrap_or(START), changed: changed.into() }, positions))
}
