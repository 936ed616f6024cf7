//! The client that a command works through: a graph opened in this process, or a running server. Both return the types of
//! `kinfolk-api`, which `--json` prints.

mod address;
mod local;

use anyhow::Result;
use kinfolk_client::PageOfItems;
use kinfolk_client::blocking::{self, List};
use kinfolk_core::{Id, PageRequest};

pub(crate) use address::ServerAddress;
pub(crate) use local::{LocalGraph, OPERATOR};

use crate::profile::LocalProfile;

/// Where the graph of a command is. Nothing is open yet.
#[derive(Clone)]
pub(crate) enum Endpoint {
    /// A folder that no server has open.
    Local(Box<LocalProfile>),
    /// A running server.
    Server(ServerAddress),
}

/// An open graph: commands match on it and call either side.
pub(crate) enum Client {
    /// A graph that is open in this process. Every operation is allowed.
    Local(Box<LocalGraph>),
    /// A server. It decides what the credential allows.
    Remote(blocking::Client),
}

impl Endpoint {
    /// Opens the graph, which must exist.
    pub(crate) fn open(&self) -> Result<Client> {
        Ok(match self {
            Self::Local(profile) => Client::Local(Box::new(LocalGraph::open(profile)?)),
            Self::Server(address) => Client::Remote(address.client()?),
        })
    }

    /// Opens the graph for a write about these users. A folder without a graph gets one.
    pub(crate) fn open_or_create_for(&self, users: &[Id]) -> Result<Client> {
        match self {
            Self::Local(profile) => {
                profile.require_creatable_for(users)?;
                Ok(Client::Local(Box::new(LocalGraph::open_or_create(profile)?)))
            }
            Self::Server(_) => self.open(),
        }
    }
}

impl Client {
    /// Makes its reads show what a token covers, and its tokens cover it.
    pub(crate) fn seeing(mut self, token: Option<&str>) -> Result<Self> {
        match (&mut self, token) {
            (_, None) => {}
            (Self::Local(graph), Some(token)) => graph.see(token)?,
            (Self::Remote(server), Some(token)) => server.set_token(Some(token.to_owned())),
        }
        Ok(self)
    }

    /// Closes the graph and reports what failed.
    pub(crate) fn close(self) -> Result<()> {
        match self {
            Self::Local(graph) => graph.close(),
            Self::Remote(_) => Ok(()),
        }
    }
}

/// A page of a list at a server.
pub(crate) fn page_of<P: PageOfItems>(list: List<P>, request: PageRequest<'_>) -> Result<P> {
    let list = list.limit(request.limit);
    let list = match request.cursor {
        Some(cursor) => list.cursor(cursor),
        None => list,
    };
    Ok(list.page()?)
}

/// The server for a moderator, who is recorded if named.
pub(crate) fn as_moderator(server: &blocking::Client, moderator: Option<Id>) -> blocking::Client {
    moderator.map_or_else(|| server.clone(), |moderator| server.acting_as(moderator))
}
