//! What the demo prints: the results of the sample queries, then the addresses of the server.

use std::io::{self, Write};
use std::path::Path;

use kinfolk_api::{self as api, Comment, CommentNode, Counts, ListEntry, Post, SuggestedUser};
use kinfolk_core::Id;
use serde::{Deserialize, Serialize, Serializer};

use super::{CHECKS, Sample};
use crate::print::{Print, excerpt, grouped};
use crate::serve::Ready;

/// The results of the sample queries.
#[derive(Serialize)]
pub(super) struct Shown {
    pub(super) users: u64,
    pub(super) edges: u64,
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) queries: Queries,
    pub(super) feed: Vec<Post>,
    pub(super) comments: Vec<CommentNode>,
    pub(super) check_nanoseconds: u64,
}

/// The results about the graph.
#[derive(Serialize)]
pub(super) struct Queries {
    #[serde(serialize_with = "id_text")]
    pub(super) celebrity: Id,
    #[serde(serialize_with = "id_text")]
    pub(super) fan: Id,
    pub(super) counts: Vec<Counts>,
    pub(super) newest_followers: Vec<ListEntry>,
    pub(super) suggestions: Vec<SuggestedUser>,
}

fn id_text<S: Serializer>(id: &Id, serializer: S) -> Result<S::Ok, S::Error> {
    api::Id(*id).serialize(serializer)
}

impl Print for Shown {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Queries { celebrity, fan, counts, newest_followers, suggestions } = &self.queries;
        writeln!(out, "Stored, sorted and indexed in {:.1} s\n", self.seconds)?;
        for Counts { id, following, followers } in counts {
            let (following, followers) = (grouped(*following), grouped(*followers));
            writeln!(out, "user {id} follows {following} users and has {followers} followers")?;
        }
        writeln!(out, "\nnewest followers of user {celebrity}:")?;
        for entry in newest_followers {
            writeln!(out, "  {}  {}", entry.since, entry.id)?;
        }
        writeln!(out, "\nsuggestions for user {fan}:")?;
        for found in suggestions {
            writeln!(out, "  {}: {} of its followees follow this user", found.id, found.mutual_count)?;
        }
        writeln!(out, "\nhome feed of user {fan}:")?;
        for post in &self.feed {
            writeln!(out, "  {}  {}: {}", post.created_at, post.author, title(post))?;
        }
        writeln!(out, "\ncomments on the newest post:")?;
        for CommentNode { comment, replies, .. } in &self.comments {
            writeln!(out, "  {}: {}", comment.author, body(comment))?;
            for CommentNode { comment, .. } in replies {
                writeln!(out, "    {}: {}", comment.author, body(comment))?;
            }
        }
        let (checks, each) = (grouped(CHECKS), self.check_nanoseconds);
        writeln!(out, "\n{checks} checks of random pairs: {each} ns each, on one core\n")
    }
}

/// The part of a payload that is shown.
#[derive(Deserialize)]
struct Titled {
    title: String,
}

fn title(post: &Post) -> String {
    let payload = post.payload.as_ref().and_then(|payload| payload.parse::<Titled>().ok());
    payload.map(|Titled { title }| excerpt(&title)).unwrap_or_default()
}

fn body(comment: &Comment) -> String {
    comment.body.as_deref().map(excerpt).unwrap_or_default()
}

/// The addresses of the server.
#[derive(Serialize)]
pub(super) struct Serving<'a> {
    http: &'a str,
    redis: &'a str,
    /// The page of the fan, if the console is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    console: Option<String>,
    #[serde(skip)]
    sample: Sample,
}

impl<'a> Serving<'a> {
    pub(super) fn new(ready: &'a Ready, has_console: bool, sample: Sample) -> Self {
        let (http, redis) = (&ready.http, ready.redis.as_deref().unwrap_or_default());
        let console = has_console.then(|| format!("{http}/console/users/{}", sample.fan));
        Self { http, redis, console, sample }
    }
}

/// With calls to try.
impl Print for Serving<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { http, redis, console, sample: Sample { celebrity, fan, post } } = self;
        let port = redis.rsplit(':').next().unwrap_or_default();
        let program = std::env::args().next().unwrap_or_else(|| "kinfolk".to_owned());
        let program =
            Path::new(&program).file_name().map_or_else(String::new, |name| name.display().to_string());
        if let Some(console) = console {
            writeln!(out, "Look around in a browser: {console}")?;
        }
        writeln!(out, "Serving REST on {http} (see {http}/openapi.json) and the Redis protocol on {redis}")?;
        writeln!(out, "\nTry:\n")?;
        writeln!(out, "  curl {http}/v1/users/{fan}/following/{celebrity}")?;
        writeln!(out, "  curl -i -X POST -H 'Kinfolk-Actor: {celebrity}' {http}/v1/users/{fan}/follow")?;
        writeln!(out, "  curl '{http}/v1/users/{fan}/suggestions?limit=3'")?;
        writeln!(out, "  curl '{http}/v1/users/{fan}/feed?limit=3'")?;
        writeln!(out, "  curl '{http}/v1/posts/{post}/comments/tree?limit=3&depth=1'")?;
        writeln!(out)?;
        writeln!(out, "or, with any Redis client or the command line:\n")?;
        writeln!(out, "  redis-cli -p {port} SISMEMBER following:{fan} {celebrity}")?;
        writeln!(out, "  {program} followers {celebrity} --limit 3 --url {http}\n")?;
        writeln!(out, "Ctrl-C stops the server and removes the data.")
    }
}
