//! `FOLLOW`, `UNFOLLOW`, `SADD`, `SREM`: changes of whom a user follows. Only parses and allows them; they are
//! committed together with their neighbours, see [`super::super::writes`]. Also `DISMISS`, which is not.

use kinfolk_core::graph::{EdgeAction, FollowerChanges, FollowerCommand, Side, UserSet};
use kinfolk_core::{Error, Id, IdKind, Position, Result, Store};

use super::super::batch::Arguments;
use super::super::keys;
use super::super::table::{Who, Write};
use super::super::writes::{Answer, Change};
use super::{invalid, posts, syntax_error};
use crate::access::Caller;
use crate::service::Service;

/// Refuses a caller who may not speak for the user that the first argument names.
pub fn authorize(who: Who, caller: &Caller, kind: IdKind, arguments: Arguments<'_>) -> Result<Option<Id>> {
    let first = arguments.get(1).unwrap_or_default();
    match who {
        Who::Anyone => Ok(None),
        Who::Viewer => {
            let viewer = kind.parse_bytes(first)?;
            caller.require_viewer(viewer).map(|()| Some(viewer))
        }
        Who::Actor => caller.actor(Some(kind.parse_bytes(first)?)).map(Some),
        Who::ActorKey => match keys::parse(kind, first)? {
            UserSet { side: Side::Following, of } => caller.actor(Some(of)).map(Some),
            UserSet { side: Side::Followers, .. } => {
                Err(invalid("followers:ID is read-only: write to the following:ID of the follower"))
            }
        },
    }
}

/// What a write of `actor` is about.
pub fn parse<S: Store>(
    verb: Write,
    actor: Option<Id>,
    service: &Service<S>,
    arguments: Arguments<'_>,
) -> Result<Change> {
    let follower = actor.ok_or_else(syntax_error)?;
    let (action, answer) = match verb {
        Write::Post => return posts::parse(follower, service, arguments).map(Change::Post),
        Write::Follow => (EdgeAction::Follow, Answer::Token),
        Write::Unfollow => (EdgeAction::Unfollow, Answer::Token),
        Write::Add => (EdgeAction::Follow, Answer::Count),
        Write::Remove => (EdgeAction::Unfollow, Answer::Count),
    };
    let kind = service.id_kind();
    let members = arguments.skip(2).iter();
    let commands = members.map(|member| Ok(FollowerCommand { action, followee: kind.parse_bytes(member)? }));
    let commands = commands.collect::<Result<Vec<_>>>()?;
    // The graph refuses this too, but in a transaction the neighbours of the same follower would be refused with it. Not to
    // follow oneself is what is so already.
    if action == EdgeAction::Follow && commands.iter().any(|command| command.followee == follower) {
        return Err(Error::SelfFollow);
    }
    service.limits.take_changes(follower, commands.len() as u32)?;
    Ok(Change::Edges(answer, FollowerChanges { follower, commands }))
}

/// `DISMISS actor user`: the user is not suggested to the actor again. Returns where that is in the log.
pub async fn dismiss<S: Store>(
    actor: Option<Id>,
    service: &Service<S>,
    arguments: Arguments<'_>,
) -> Result<Position> {
    let actor = actor.ok_or_else(syntax_error)?;
    let target = service.id_kind().parse_bytes(arguments.get(2).ok_or_else(syntax_error)?)?;
    service.limits.take_change(actor)?;
    Ok(service.suggestions()?.dismiss(actor, target).await?.position)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kinfolk_core::ErrorCode;

    use super::super::super::batch::Batch;
    use super::super::super::frame::FrameLimits;
    use super::super::super::table::COMMANDS;
    use super::*;
    use crate::access::{Identity, Scopes};
    use crate::limits::Budget;

    /// Every command that speaks for somebody is refused to somebody else.
    #[test]
    fn users_speak_for_themselves() {
        for command in COMMANDS {
            let line = format!("{} {}\n", command.name, command.example.join(" "));
            let mut batch = Batch::default();
            batch.fill(line.as_bytes(), 0, 1, &FrameLimits::DEFAULT);
            let ask = |identity| {
                let caller = Caller::new(identity, Scopes::all(), Arc::new(Budget::unlimited()));
                authorize(command.who, &caller, IdKind::Integer, batch.command(0, line.as_bytes()))
            };
            let seven = Id::Integer(7);
            for identity in [Identity::User(seven), Identity::Service("app".into()), Identity::Anyone] {
                let spoken_for = ask(identity).unwrap();
                assert_eq!(spoken_for, (command.who != Who::Anyone).then_some(seven), "{line}");
            }
            match (ask(Identity::User(Id::Integer(8))), command.who) {
                (Ok(None), Who::Anyone) => {}
                (Err(error), _) => assert_eq!(error.code(), ErrorCode::Forbidden, "{line}"),
                (Ok(_), _) => panic!("user 8 spoke for user 7: {line}"),
            }
        }
    }
}
