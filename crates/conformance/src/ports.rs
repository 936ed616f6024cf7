//! The ports that groups of cases need. Every case sees what it wrote in the log, so that all of them need edges and the log.

use kinfolk_core::GraphStore;
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::comments::CommentStore;
use kinfolk_core::feeds::{FeedStore, InboxStore, PostStore};
use kinfolk_core::graph::EdgeStore;
use kinfolk_core::suggestions::SuggestionStore;

/// Gives a name to several ports.
macro_rules! name_ports {
    ($($(#[$says:meta])+ $name:ident = $first:ident $(+ $other:ident)*;)+) => {
        $($(#[$says])+
        pub trait $name: $first $(+ $other)* {}

        impl<S: $first $(+ $other)*> $name for S {})+
    };
}

name_ports! {
    /// Edges and the log.
    EdgePorts = EdgeStore + ChangeLog;
    /// Posts, which are delivered by followers.
    PostPorts = EdgePorts + PostStore;
    /// Feeds of posts.
    FeedPorts = PostPorts + FeedStore;
    /// Inboxes, which feeds are read from.
    InboxPorts = FeedPorts + InboxStore;
    /// Comments, on posts and on other parents.
    CommentPorts = PostPorts + CommentStore;
    /// Suggestions, which leave out what a check finds.
    SuggestionPorts = GraphStore + SuggestionStore;
    /// The graph with posts, feeds, inboxes and comments.
    ContentPorts = GraphStore + InboxPorts + CommentPorts;
    /// Everything.
    AllPorts = SuggestionPorts + ContentPorts;
}
