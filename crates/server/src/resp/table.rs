//! All commands. A new one is a file in [`super::commands`] and a line here.

use kinfolk_core::Store;

pub use super::command::{ActorRule, Command};
use super::commands::*;

impl<S: Store> Command<S> {
    /// All commands. The most frequent come first, because a name is searched from the front.
    pub const ALL: &'static [Self] = &[
        sismember::command(),
        follows::command(),
        smismember::command(),
        follow::follow(),
        follow::sadd(),
        unfollow::unfollow(),
        unfollow::srem(),
        scard::command(),
        counts::command(),
        following::command(),
        followers::command(),
        friends::command(),
        after::command(),
        multi::command(),
        exec::command(),
        discard::command(),
        ping::command(),
        echo::command(),
        sscan::command(),
        smembers::command(),
        sinter::command(),
        sintercard::command(),
        common::command(),
        known::command(),
        suggest::command(),
        dismiss::command(),
        post::command(),
        delpost::command(),
        feed::command(),
        posts::command(),
        exists::command(),
        key_type::command(),
        hello::command(),
        auth::command(),
        select::command(),
        client::command(),
        command::command(),
        config::command(),
        info::command(),
        quit::command(),
        reset::command(),
        watch::command(),
        unwatch::command(),
        scan::command(),
        dbsize::command(),
        srandmember::command(),
        ttl::ttl(),
        ttl::pttl(),
        ttl::expiretime(),
        ttl::pexpiretime(),
        object::command(),
        memory::command(),
        slowlog::command(),
        time::command(),
    ];

    /// The command of that name, in any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        Self::ALL.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The number of the command of that name.
    pub(super) fn number(name: &[u8]) -> Option<u8> {
        let number =
            Self::ALL.iter().position(|command| command.name.as_bytes().eq_ignore_ascii_case(name))?;
        u8::try_from(number).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kinfolk_conformance::ModelStore;

    use super::super::command::{Cost, Run};
    use super::*;
    use crate::access::Scope;

    const COMMANDS: &[Command<ModelStore>] = Command::ALL;

    #[test]
    fn names_are_unique_and_found_in_any_case() {
        let names: HashSet<_> = COMMANDS.iter().map(|command| command.name).collect();
        assert_eq!(names.len(), COMMANDS.len());
        for command in COMMANDS {
            assert_eq!(command.name, command.name.to_lowercase());
            let found = Command::<ModelStore>::find(command.name.to_uppercase().as_bytes()).unwrap();
            assert_eq!(found.name, command.name);
        }
        assert!(Command::<ModelStore>::find(b"").is_none());
        assert!(Command::<ModelStore>::find(b"sismembers").is_none());
    }

    #[test]
    fn examples_are_called_right() {
        for command in COMMANDS {
            assert!(command.takes(command.example.len() + 1), "{}", command.name);
        }
    }

    #[test]
    fn everything_about_the_graph_needs_a_scope() {
        for command in COMMANDS {
            let free = matches!(command.run, Run::Session(_) | Run::Server(_) | Run::Exec);
            assert!(command.scope.is_some() || free, "{}", command.name);
            let writes = matches!(command.run, Run::Write(..) | Run::Commit(_));
            assert_eq!(command.scope == Some(Scope::Write), writes, "{}", command.name);
            assert_eq!(command.cost == Cost::Changes, writes, "{}", command.name);
        }
    }
}
