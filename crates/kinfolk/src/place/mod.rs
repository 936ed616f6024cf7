//! Where commands work: a folder that no server has open, or a running server. One interface, two implementations.

mod address;
mod answers;
mod http;
mod open_graph;
mod server;
mod suggest;
mod threads;

use std::path::Path;

use anyhow::Result;
use kinfolk_core::bulk::{BackupReport, VerifyReport};
use kinfolk_core::changes::Change;
use kinfolk_core::comments::Comment;
use kinfolk_core::feeds::{NewPost, Post, PostPage};
use kinfolk_core::graph::{Counts, Edge, EdgeCommand, ListPage, OverlapPage};
use kinfolk_core::{Id, PageRequest, Timestamp};

pub use address::ServerAddress;
pub use open_graph::OpenGraph;
pub use server::Server;
pub use suggest::{SuggestDone, SuggestWish, Suggested, SuggestedUser};
pub use threads::Threads;

use crate::input::Source;
use crate::profile::embedded::Folder;
use crate::progress::Reporter;

/// An open graph, here or elsewhere.
pub trait Target: Threads {
    /// Makes or removes an edge, durably.
    fn write(&self, command: EdgeCommand) -> Result<WriteDone>;

    /// Since when an edge exists, if it does.
    fn since(&self, edge: Edge) -> Result<Option<Timestamp>>;

    /// A page of a list.
    fn page(&self, list: List, of: Id, request: PageRequest<'_>) -> Result<ListPage>;

    /// The counts of users, as many as one call may ask for.
    fn counts(&self, of: &[Id]) -> Result<Vec<Counts>>;

    /// A page of those whom all of these users follow.
    fn common(&self, of: &[Id], request: PageRequest<'_>) -> Result<OverlapPage>;

    /// A page of those whom `viewer` follows and who follow `of`.
    fn known_followers(&self, viewer: Id, of: Id, request: PageRequest<'_>) -> Result<OverlapPage>;

    /// Whom a user may know, the best first.
    fn suggestions(&self, of: Id, limit: usize) -> Result<Suggested>;

    /// Takes note, durably, that `target` is not to be suggested to `of` again.
    fn dismiss(&self, of: Id, target: Id) -> Result<WriteDone>;

    /// Registers a post, durably.
    fn register_post(&self, post: NewPost) -> Result<PostDone>;

    /// Deletes a post of an author's, durably.
    fn delete_post(&self, author: Id, id: Id) -> Result<WriteDone>;

    /// A page of posts.
    fn posts(&self, list: PostList, of: Id, request: PageRequest<'_>) -> Result<PostPage>;

    /// Changes after a token, or from the oldest kept.
    fn changes(&self, after: Option<&str>, limit: usize) -> Result<ChangesDone>;

    /// Adds the edges of files.
    fn import(
        self: Box<Self>,
        sources: &[Source],
        request: &ImportWish,
        reporter: &Reporter,
    ) -> Result<Imported>;

    /// Writes all edges to a file, or to standard output for `-`; gives their number.
    fn export(&self, file: &Path, reporter: &Reporter) -> Result<u64>;

    /// Compares everything derived with the edges.
    fn verify(&self, repair: bool, reporter: &Reporter) -> Result<VerifyReport>;

    /// Computes suggestions for everyone, until it is done or a signal stops it.
    fn suggest(&self, wish: &SuggestWish, reporter: &Reporter) -> Result<SuggestDone>;

    /// Writes a backup to a file that does not exist yet.
    fn backup(&self, file: &Path, reporter: &Reporter) -> Result<BackupReport>;

    /// Ends the work and says what of it failed.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Whom a user follows.
    Following,
    /// Who follows a user.
    Followers,
    /// Both.
    Friends,
}

/// Which posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostList {
    /// A user's home feed.
    Feed,
    /// A user's own posts.
    Posts,
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct WriteDone {
    /// Whether it changed anything.
    pub changed: bool,
    /// The token of the position at which it is visible.
    pub token: String,
}

/// What registering a post did.
#[derive(Clone, Debug)]
pub struct PostDone {
    /// The token of the position at which it is visible.
    pub token: String,
    /// The post, as it is stored.
    pub post: Post,
    /// Whether it is new, and not a repetition.
    pub is_new: bool,
}

/// What writing or editing a comment did.
#[derive(Clone, Debug)]
pub struct CommentDone {
    /// The token of the position at which it is visible.
    pub token: String,
    /// The comment, as it is stored.
    pub comment: Comment,
    /// Whether it is new, and not a repetition.
    pub is_new: bool,
}

/// A page of the change log.
#[derive(Clone, Debug)]
pub struct ChangesDone {
    /// The changes, oldest first within each shard.
    pub items: Vec<Change>,
    /// The token to go on from.
    pub next: String,
}

/// What to import and how.
#[derive(Clone, Copy, Debug)]
pub struct ImportWish {
    /// Count and skip malformed lines.
    pub skip_invalid: bool,
    /// How many one user may follow; without it, what the graph's settings say.
    pub limit: Option<u32>,
    /// Let users follow as many as the files say.
    pub no_limit: bool,
    /// How much memory sorting may use, in MiB.
    pub memory: Option<u32>,
}

/// What an import did.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Edges that are new.
    pub added: u64,
    /// Edges that were there.
    pub duplicates: u64,
    /// Edges from a user to itself.
    pub self_follows: u64,
    /// Edges over the limit.
    pub over_limit: u64,
    /// Lines that could not be read.
    pub invalid: u64,
    /// Edges read.
    pub edges: u64,
    /// The token of the position at which it is visible.
    pub token: String,
}

/// The place of the graph that a command works on.
#[derive(Clone, Debug)]
pub enum Place {
    /// A folder that is opened in this process.
    Folder(Box<Folder>),
    /// A running server.
    Server(ServerAddress),
}

impl Place {
    /// Opens the graph, which must be there already.
    pub fn open(&self) -> Result<Box<dyn Target>> {
        Ok(match self {
            Self::Folder(folder) => Box::new(OpenGraph::open(&**folder)?),
            Self::Server(address) => Box::new(Server::connect(address)?),
        })
    }

    /// Opens the graph to add something about these users. A folder without a graph gets one.
    pub fn open_to_add(&self, users: &[Id]) -> Result<Box<dyn Target>> {
        Ok(match self {
            Self::Folder(folder) => Box::new(OpenGraph::open_or_create_for(&**folder, users)?),
            Self::Server(address) => Box::new(Server::connect(address)?),
        })
    }
}
