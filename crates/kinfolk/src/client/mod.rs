//! The client that a command works through: a graph opened in this process, or a running server.

mod address;
mod answers;
mod comment_answers;
mod http;
mod local;
mod server;
mod server_comments;

use anyhow::Result;
use kinfolk_core::Id;
use kinfolk_core::changes::Change;
use kinfolk_core::comments::Comment;
use kinfolk_core::feeds::Post;

pub(crate) use address::ServerAddress;
pub(crate) use comment_answers::moderator;
pub(crate) use http::{Call, last_line};
pub(crate) use local::{LocalGraph, OPERATOR};
pub(crate) use server::{Server, SuggestedUser, Suggestions};

use crate::profile::embedded::Folder;

/// Where the graph of a command is. Nothing is open yet.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    /// A folder that no server has open.
    Folder(Box<Folder>),
    /// A running server.
    Server(ServerAddress),
}

/// An open graph: commands match on it and call either side.
pub(crate) enum Client {
    /// A graph that is open in this process. Every operation is allowed.
    Local(Box<LocalGraph<Folder>>),
    /// A server. It decides what the credential allows.
    Remote(Server),
}

impl Endpoint {
    /// Opens the graph, which must exist.
    pub(crate) fn open(&self) -> Result<Client> {
        Ok(match self {
            Self::Folder(folder) => Client::Local(Box::new(LocalGraph::open(&**folder)?)),
            Self::Server(address) => Client::Remote(Server::connect(address)?),
        })
    }

    /// Opens the graph for a write about these users. A folder without a graph gets one.
    pub(crate) fn open_or_create_for(&self, users: &[Id]) -> Result<Client> {
        Ok(match self {
            Self::Folder(folder) => {
                Client::Local(Box::new(LocalGraph::open_or_create_for(&**folder, users)?))
            }
            Self::Server(address) => Client::Remote(Server::connect(address)?),
        })
    }
}

impl Client {
    /// Closes the graph and reports what failed.
    pub(crate) fn close(self) -> Result<()> {
        match self {
            Self::Local(graph) => graph.close(),
            Self::Remote(_) => Ok(()),
        }
    }
}

/// The result of a write.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// Whether the write changed anything.
    pub(crate) changed: bool,
    /// The token of the position at which the write is visible.
    pub(crate) token: String,
}

/// The result of registering a post.
#[derive(Clone, Debug)]
pub(crate) struct PostWritten {
    pub(crate) written: Written,
    /// The stored post.
    pub(crate) post: Post,
}

/// The result of writing or editing a comment.
#[derive(Clone, Debug)]
pub(crate) struct CommentWritten {
    pub(crate) written: Written,
    /// The stored comment.
    pub(crate) comment: Comment,
}

/// A page of the change log.
#[derive(Clone, Debug)]
pub(crate) struct ChangePage {
    /// The changes, oldest first within each shard.
    pub(crate) items: Vec<Change>,
    /// The token to continue from.
    pub(crate) next: String,
}
