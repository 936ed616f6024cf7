//! Every command once: how it is called, who may, and what is said about it. Dispatch, `COMMAND` and the tests of
//! access derive from this table. What a command does is in [`super::commands`].

use crate::access::Scope;
use crate::metrics::Operation;
use crate::service::Capability;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Connection(Connection),
    Transaction(Transaction),
    Read(Read),
    Write(Write),
    Single(Single),
    /// About the server: `INFO`.
    Info,
    /// Not in the engine yet; the name is that of the thing that is missing.
    Missing(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Ping,
    Echo,
    Hello,
    Auth,
    Select,
    Client,
    Command,
    Config,
    Quit,
    Reset,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transaction {
    Multi,
    Exec,
    Discard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    IsMember,
    AreMembers,
    Cardinality,
    Scan,
    Exists,
    Type,
    Members,
    Intersection,
    IntersectionCardinality,
    Follows,
    Following,
    Followers,
    Friends,
    Counts,
    Common,
    Known,
    Suggestions,
    Posts,
    Feed,
}

impl Read {
    /// Whether it asks for one edge only, with so many arguments.
    pub fn is_one_check(self, arguments: usize) -> bool {
        match self {
            Self::IsMember => true,
            Self::Follows => arguments == 3,
            _ => false,
        }
    }

    /// Whether it can be so much work that it is given up when its client leaves.
    pub fn may_walk_far(self) -> bool {
        matches!(
            self,
            Self::Intersection
                | Self::IntersectionCardinality
                | Self::Common
                | Self::Known
                | Self::Suggestions
                | Self::Friends
                | Self::Posts
                | Self::Feed
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Add,
    Remove,
    Follow,
    Unfollow,
    Post,
}

/// A write that is committed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Single {
    Dismiss,
    DeletePost,
}

/// Whom a command's first argument speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Nobody in particular.
    Anyone,
    /// The user who acts, by id.
    Actor,
    /// The user who acts, by the key of what it follows.
    ActorKey,
    /// The user to whom the answer belongs, by id.
    Viewer,
}

/// Where the keys of a command are, as Redis says it: first, last (from the end if negative), step.
type Keys = (u8, i8, u8);

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// In lower case, as `COMMAND` says it.
    pub name: &'static str,
    pub(super) verb: Verb,
    /// How many arguments with the name; if negative, at least so many.
    pub(super) arity: i8,
    /// What a caller needs; with none, a caller needs only to be known.
    pub scope: Option<Scope>,
    /// Who may speak for whom.
    pub who: Who,
    /// What the profile must have for it.
    pub capability: Option<Capability>,
    /// Under which name it is counted.
    pub(super) operation: Operation,
    pub(super) keys: Keys,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// One call that is valid, without the name. Where somebody acts or views, it is user 7.
    pub example: &'static [&'static str],
}

const NO_KEYS: Keys = (0, 0, 0);
const ONE_KEY: Keys = (1, 1, 1);
const ALL_KEYS: Keys = (1, -1, 1);

const fn connection(
    name: &'static str,
    verb: Connection,
    arity: i8,
    example: &'static [&'static str],
    summary: &'static str,
) -> Command {
    Command {
        name,
        verb: Verb::Connection(verb),
        arity,
        scope: None,
        who: Who::Anyone,
        capability: None,
        operation: Operation::Other,
        keys: NO_KEYS,
        summary,
        example,
    }
}

const fn transaction(name: &'static str, verb: Transaction, summary: &'static str) -> Command {
    Command { verb: Verb::Transaction(verb), ..connection(name, Connection::Ping, 1, &[], summary) }
}

const fn read(
    (name, verb, operation): (&'static str, Read, Operation),
    arity: i8,
    keys: Keys,
    example: &'static [&'static str],
    summary: &'static str,
) -> Command {
    Command {
        verb: Verb::Read(verb),
        scope: Some(Scope::Read),
        operation,
        keys,
        ..connection(name, Connection::Ping, arity, example, summary)
    }
}

const fn write(
    (name, verb, operation): (&'static str, Write, Operation),
    arity: i8,
    who: Who,
    example: &'static [&'static str],
    summary: &'static str,
) -> Command {
    let keys = if matches!(who, Who::ActorKey) { ONE_KEY } else { NO_KEYS };
    Command {
        verb: Verb::Write(verb),
        scope: Some(Scope::Write),
        who,
        operation,
        keys,
        ..connection(name, Connection::Ping, arity, example, summary)
    }
}

const fn single(
    (name, verb, operation): (&'static str, Single, Operation),
    example: &'static [&'static str],
    summary: &'static str,
) -> Command {
    let writes = write((name, Write::Follow, operation), 3, Who::Actor, example, summary);
    Command { verb: Verb::Single(verb), ..writes }
}

const fn needing(capability: Capability, command: Command) -> Command {
    Command { capability: Some(capability), ..command }
}

const fn missing(
    name: &'static str,
    arity: i8,
    scope: Scope,
    who: Who,
    example: &'static [&'static str],
    what: &'static str,
) -> Command {
    Command {
        verb: Verb::Missing(what),
        scope: Some(scope),
        who,
        ..connection(name, Connection::Ping, arity, example, "is not available yet")
    }
}

/// All commands. The most frequent are in front, because a name is looked for from there.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    read(("sismember", Read::IsMember, Operation::Check), 3, ONE_KEY, &["following:7", "8"], "whether a user is in a set"),
    read(("follows", Read::Follows, Operation::Check), -3, NO_KEYS, &["7", "8"], "whether a user follows others"),
    read(("smismember", Read::AreMembers, Operation::CheckMany), -3, ONE_KEY, &["following:7", "8", "9"], "whether each of some users is in a set"),
    write(("follow", Write::Follow, Operation::Follow), 3, Who::Actor, &["7", "8"], "makes a user follow another; answers the consistency token"),
    write(("sadd", Write::Add, Operation::Follow), -3, Who::ActorKey, &["following:7", "8"], "makes a user follow others; answers how many are new"),
    write(("unfollow", Write::Unfollow, Operation::Unfollow), 3, Who::Actor, &["7", "8"], "makes a user not follow another; answers the consistency token"),
    write(("srem", Write::Remove, Operation::Unfollow), -3, Who::ActorKey, &["following:7", "8"], "makes a user not follow others; answers how many were followed"),
    read(("scard", Read::Cardinality, Operation::Counts), 2, ONE_KEY, &["followers:7"], "how many users are in a set"),
    read(("counts", Read::Counts, Operation::Counts), -2, NO_KEYS, &["7"], "how many users follow and are followed by each of some"),
    read(("following", Read::Following, Operation::Following), -2, NO_KEYS, &["7"], "whom a user follows, newest first"),
    read(("followers", Read::Followers, Operation::Followers), -2, NO_KEYS, &["7"], "who follows a user, newest first"),
    read(("friends", Read::Friends, Operation::Friends), -2, NO_KEYS, &["7"], "who follows a user and is followed back, newest first"),
    connection("after", Connection::After, 2, &["token"], "makes the next read at least as fresh as a consistency token"),
    transaction("multi", Transaction::Multi, "queues the commands that follow"),
    transaction("exec", Transaction::Exec, "runs the queued commands in order, those of one follower that come one after another whole or not at all"),
    transaction("discard", Transaction::Discard, "forgets the queued commands"),
    connection("ping", Connection::Ping, -1, &[], "answers"),
    connection("echo", Connection::Echo, 2, &["hello"], "answers what it was given"),
    read(("sscan", Read::Scan, Operation::Following), -3, ONE_KEY, &["following:7", "0"], "walks a set of any size"),
    read(("smembers", Read::Members, Operation::Following), 2, ONE_KEY, &["following:7"], "all users of a set of up to 10,000"),
    read(("sinter", Read::Intersection, Operation::Common), -2, ALL_KEYS, &["following:7", "following:8"], "the users that are in all sets, up to 10,000"),
    read(("sintercard", Read::IntersectionCardinality, Operation::Common), -3, NO_KEYS, &["1", "following:7"], "how many users are in all sets"),
    read(("common", Read::Common, Operation::Common), -3, NO_KEYS, &["7", "8"], "whom all of some users follow, by id"),
    Command { who: Who::Viewer, ..read(("known", Read::Known, Operation::KnownFollowers), -3, NO_KEYS, &["7", "8"], "which of those whom a viewer follows follow a user, by id") },
    needing(Capability::Suggestions, Command { who: Who::Viewer, ..read(("suggest", Read::Suggestions, Operation::Suggestions), -2, NO_KEYS, &["7"], "whom a user may know, the best first") }),
    needing(Capability::Suggestions, single(("dismiss", Single::Dismiss, Operation::Dismiss), &["7", "8"], "does not suggest a user to another again; answers the consistency token")),
    needing(Capability::Feeds, write(("post", Write::Post, Operation::Post), -2, Who::Actor, &["7"], "registers a post; answers its id and the consistency token")),
    needing(Capability::Feeds, single(("delpost", Single::DeletePost, Operation::DeletePost), &["7", "1"], "deletes a post of a user; answers the consistency token")),
    needing(Capability::Feeds, Command { who: Who::Viewer, ..read(("feed", Read::Feed, Operation::Feed), -2, NO_KEYS, &["7"], "the posts of all whom a user follows, newest first") }),
    needing(Capability::Feeds, read(("posts", Read::Posts, Operation::Posts), -2, NO_KEYS, &["7"], "a user's own posts, newest first")),
    read(("exists", Read::Exists, Operation::Counts), -2, ALL_KEYS, &["following:7"], "how many of some sets are not empty"),
    read(("type", Read::Type, Operation::Counts), 2, ONE_KEY, &["following:7"], "set, or none if it is empty"),
    connection("hello", Connection::Hello, -1, &[], "agrees on the version of the protocol"),
    connection("auth", Connection::Auth, -2, &["credential"], "says who is calling, by an API key or a JWT"),
    connection("select", Connection::Select, 2, &["0"], "chooses the database, of which there is one"),
    connection("client", Connection::Client, -2, &["id"], "about this connection"),
    connection("command", Connection::Command, -1, &["count"], "about the commands"),
    connection("config", Connection::Config, -2, &["get", "save"], "settings, as far as clients ask for them"),
    Command { verb: Verb::Info, ..connection("info", Connection::Ping, -1, &[], "about the server") },
    connection("quit", Connection::Quit, -1, &[], "ends the connection"),
    connection("reset", Connection::Reset, 1, &[], "brings the connection back to its start"),
    missing("watch", -2, Scope::Read, Who::Anyone, &["following:7"], "WATCH"),
];

impl Command {
    /// The command of that name, in any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether so many arguments, the name included, can be right.
    pub(super) fn takes(&self, arguments: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Whether it is for callers who have not said who they are, too.
    pub fn is_open(&self) -> bool {
        use Connection::{Auth, Hello, Quit, Reset};
        matches!(self.verb, Verb::Connection(Auth | Hello | Quit | Reset))
    }

    /// What `COMMAND` calls its flags.
    pub(super) fn flags(&self) -> &'static [&'static str] {
        match self.verb {
            Verb::Write(_) | Verb::Single(_) => &["write", "denyoom"],
            Verb::Read(Read::IsMember | Read::Cardinality | Read::AreMembers | Read::Follows) => {
                &["readonly", "fast"]
            }
            Verb::Read(_) => &["readonly"],
            _ if self.is_open() => &["noscript", "loading", "stale", "fast", "no_auth"],
            _ => &["noscript", "loading", "stale", "fast"],
        }
    }

    /// What `COMMAND` calls its group.
    pub(super) fn group(&self) -> &'static str {
        match self.verb {
            Verb::Info | Verb::Connection(Connection::Command | Connection::Config) => "server",
            Verb::Connection(_) => "connection",
            Verb::Transaction(_) => "transactions",
            Verb::Read(_) | Verb::Write(_) if self.keys.0 > 0 => "set",
            _ => "graph",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found_in_any_case() {
        let names: HashSet<_> = COMMANDS.iter().map(|command| command.name).collect();
        assert_eq!(names.len(), COMMANDS.len());
        for command in COMMANDS {
            assert_eq!(command.name, command.name.to_lowercase());
            let found = Command::find(command.name.to_uppercase().as_bytes()).unwrap();
            assert!(std::ptr::eq(found, command));
        }
        assert!(Command::find(b"").is_none());
        assert!(Command::find(b"sismembers").is_none());
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
            let free = matches!(command.verb, Verb::Connection(_) | Verb::Transaction(_) | Verb::Info);
            assert_eq!(command.scope.is_none(), free, "{}", command.name);
            let writes = matches!(command.verb, Verb::Write(_) | Verb::Single(_));
            assert_eq!(command.scope == Some(Scope::Write), writes, "{}", command.name);
        }
    }
}
