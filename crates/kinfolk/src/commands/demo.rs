//! `demo`: generates a sample graph in a temporary folder, shows a few queries, then serves it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kinfolk::generate::PowerLaw;
use kinfolk_core::bulk::{ImportOptions, Progress};
use kinfolk_core::comments::{CommentId, CommentNode, NewComment, Parent, TreeShape, Viewer};
use kinfolk_core::feeds::{NewPost, Post};
use kinfolk_core::graph::{CheckStore, Edge, ListEntry};
use kinfolk_core::{Clock, Frontier, PageRequest, SystemClock, Timestamp};

use super::prelude::*;
use crate::client::LocalGraph;
use crate::profile::{LocalProfile, Profile};
use crate::serve::{Listeners, Logging, Ready, Server};
use crate::settings::{Configuration, ServerFlags};

const EDGES: u64 = 1_000_000;
const USERS: u64 = 50_000;
const CHECKS: u64 = 1_000_000;
/// The fan is the one with the most followees among this many newest followers of the celebrity.
const NEWEST_FOLLOWERS: usize = 100;
/// How many of the fan's followees write a post.
const AUTHORS: usize = 20;
/// The time between two posts.
const POST_EVERY: Duration = Duration::from_secs(60);
/// How many entries of a list are shown.
const SHOWN: usize = 3;
/// Edges are spread over this time before now, so that lists have different times to be sorted by.
const SPAN: Duration = Duration::from_secs(3 * 365 * 24 * 60 * 60);

/// Generate a graph in a temporary folder, show some results and serve it
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk demo\n\n\
    The data is in a temporary folder, which is removed at the end. Ctrl-C stops the demo.")]
pub(crate) struct Demo {
    /// How many follows to generate
    #[arg(long, value_name = "N", default_value_t = EDGES, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    edges: u64,
    /// Show the sample queries and exit, without serving
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    pub(crate) flags: ServerFlags,
}

impl Demo {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let temporary = tempfile::Builder::new()
            .prefix("kinfolk-demo-")
            .tempdir()
            .context("cannot create a temporary folder")?;
        let profile = context.folder.at(temporary.path().join("graph"));
        let users = (self.edges / (EDGES / USERS)).max(100);
        let graph = PowerLaw { large: 3, ..PowerLaw::new(self.edges, users, 1) };
        let sample = generate(graph, &profile, context)?;
        if !self.once {
            serve(&context.configuration, &profile, sample)?;
        }
        // Dropping the folder would ignore errors.
        temporary.close().context("cannot remove the temporary folder")?;
        Ok(Outcome::Done)
    }
}

/// Ids for sample queries.
#[derive(Clone, Copy)]
struct Sample {
    /// The user with the most followers.
    celebrity: Id,
    /// One of its newest followers, with many followees.
    fan: Id,
    /// A post with comments.
    post: Option<Id>,
}

/// Generates the graph and shows a few queries.
fn generate(graph: PowerLaw, profile: &LocalProfile, context: &Context) -> Result<Sample> {
    let mut out = io::stdout();
    let (users, edges) = (grouped(graph.users + graph.audience()), grouped(graph.edges));
    writeln!(out, "Generating {users} users with {edges} follows in {}", profile.location())?;
    let open = LocalGraph::open_or_create(profile)?;
    let began = Instant::now();
    load(&open, graph, context)?;
    writeln!(out, "Stored, sorted and indexed in {:.1} s\n", began.elapsed().as_secs_f64())?;

    let sample = show_graph(&mut out, &open, graph.id(0))?;
    let newest = show_feed(&mut out, &open, sample.fan)?;
    if let Some(post) = &newest {
        show_comments(&mut out, &open, sample.fan, post)?;
    }
    let sample = Sample { post: newest.map(|post| post.id), ..sample };
    let per_check = time_checks(&open, graph);
    writeln!(out, "\n{} checks of random pairs: {per_check} ns each, on one core\n", grouped(CHECKS))?;
    open.close()?;
    Ok(sample)
}

/// Serves until Ctrl-C.
fn serve(configuration: &Configuration, profile: &LocalProfile, sample: Sample) -> Result<()> {
    let server = match Server::bind(configuration, profile) {
        Ok(server) => server,
        Err(taken) if taken.downcast_ref::<io::Error>().is_some_and(is_taken) => {
            writeln!(io::stdout(), "{taken:#}: taking free ports instead\n")?;
            let free = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
            Server::with_listeners(configuration, profile, Listeners::bind(free, Some(free))?)?
        }
        Err(error) => return Err(error),
    };
    let logging = Logging::start(configuration)?;
    let served = server.run(|ready| {
        // Serve even if nobody reads the output.
        let _ = show_calls(&mut io::stdout(), ready, sample);
    });
    logging.end();
    served
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// Shows the addresses of the server and calls to try.
fn show_calls(out: &mut impl Write, ready: &Ready, sample: Sample) -> io::Result<()> {
    let Sample { celebrity, fan, post } = sample;
    let Ready { http, redis, .. } = ready;
    let redis = redis.as_deref().unwrap_or_default();
    let port = redis.rsplit(':').next().unwrap_or_default();
    let program = std::env::args().next().unwrap_or_else(|| "kinfolk".to_owned());
    let program = Path::new(&program).file_name().map_or_else(String::new, |name| name.display().to_string());
    writeln!(
        out,
        "Serving REST on {http} (see {http}/openapi.json) and the Redis protocol on {redis}. Try:\n"
    )?;
    writeln!(out, "  curl {http}/v1/users/{fan}/following/{celebrity}")?;
    writeln!(out, "  curl -i -X POST -H 'Kinfolk-Actor: {celebrity}' {http}/v1/users/{fan}/follow")?;
    writeln!(out, "  curl '{http}/v1/users/{fan}/suggestions?limit=3'")?;
    writeln!(out, "  curl '{http}/v1/users/{fan}/feed?limit=3'")?;
    if let Some(post) = post {
        writeln!(out, "  curl '{http}/v1/posts/{post}/comments?view=tree'")?;
    }
    writeln!(out)?;
    writeln!(out, "or, with any Redis client or the command line:\n")?;
    writeln!(out, "  redis-cli -p {port} SISMEMBER following:{fan} {celebrity}")?;
    writeln!(out, "  {program} followers {celebrity} --limit 3 --url {http}\n")?;
    writeln!(out, "Ctrl-C stops the server and removes the data.")?;
    out.flush()
}

fn load(open: &LocalGraph, graph: PowerLaw, context: &Context) -> Result<()> {
    let options = ImportOptions {
        kind: KIND,
        following_limit: None,
        fingerprint: "demo".to_owned(),
        sort_memory: open.profile.settings.sort_memory,
    };
    let mut import = open.store.import(&options)?;
    let start = SystemClock.now().millis().saturating_sub(SPAN.as_millis() as u64);
    for (number, edge) in (0u64..).zip(graph.edges()?) {
        let since = start + number * (SPAN.as_millis() as u64 / graph.edges);
        import.push(edge, Some(Timestamp::from_millis(since)))?;
        if number.is_multiple_of(10_000) {
            context.reporter.report(Progress {
                stage: "generating follows",
                done: number,
                total: Some(graph.edges),
            });
        }
    }
    import.finish(&|progress| context.reporter.report(progress))?;
    context.reporter.finish();
    Ok(())
}

/// Shows queries of the graph.
fn show_graph(out: &mut impl Write, open: &LocalGraph, celebrity: Id) -> Result<Sample> {
    let (graph, request) = (&open.graph, PageRequest { limit: NEWEST_FOLLOWERS, cursor: None });
    let newest: Vec<ListEntry> = open.run(graph.followers(KIND, celebrity, request, Frontier::EMPTY))?.items;
    let ids: Vec<Id> = newest.iter().map(|entry| entry.id).collect();
    let counts = open.run(graph.counts(KIND, &ids, Frontier::EMPTY))?;
    let busiest = ids.iter().zip(counts).max_by_key(|(_, counts)| counts.following);
    let fan = busiest.map_or(celebrity, |(&id, _)| id);

    let users = [celebrity, fan];
    for (id, counts) in users.iter().zip(open.run(graph.counts(KIND, &users, Frontier::EMPTY))?) {
        let (following, followers) = (grouped(counts.following), grouped(counts.followers));
        writeln!(out, "user {id} follows {following} users and has {followers} followers")?;
    }
    writeln!(out, "\nnewest followers of user {celebrity}:")?;
    for entry in newest.iter().take(SHOWN) {
        writeln!(out, "  {}  {}", entry.since, entry.id)?;
    }
    writeln!(out, "\nsuggestions for user {fan}:")?;
    for found in open.run(open.suggestions()?.read(fan, SHOWN, Frontier::EMPTY))?.items {
        writeln!(out, "  {}: {} of its followees follow this user", found.id, found.mutual_count)?;
    }
    Ok(Sample { celebrity, fan, post: None })
}

/// Writes posts of a user's followees, shows the user's home feed and returns its newest post.
fn show_feed(out: &mut impl Write, open: &LocalGraph, fan: Id) -> Result<Option<Post>> {
    let (graph, feeds) = (&open.graph, open.feeds()?);
    let request = PageRequest { limit: AUTHORS, cursor: None };
    let authors = open.run(graph.following(KIND, fan, request, Frontier::EMPTY))?.items;
    let now = SystemClock.now().millis();
    for (number, author) in (0u64..).zip(authors.iter().rev()) {
        let ago = (AUTHORS as u64 - number) * POST_EVERY.as_millis() as u64;
        open.run(feeds.register_post(NewPost {
            id: None,
            author: author.id,
            created_at: Some(Timestamp::from_millis(now.saturating_sub(ago))),
            payload: Some(format!("{{\"title\":\"What {} has to say\"}}", author.id).into()),
            idempotency_key: None,
        }))?;
    }
    let request = PageRequest { limit: SHOWN, cursor: None };
    writeln!(out, "\nhome feed of user {fan}:")?;
    let feed = open.run(feeds.feed(fan, request, Frontier::EMPTY))?.items;
    for post in &feed {
        writeln!(out, "  {}  {}", post.created_at, post.payload.as_deref().unwrap_or_default())?;
    }
    Ok(feed.into_iter().next())
}

/// Writes a comment on a post and a reply of its author, and shows them.
fn show_comments(out: &mut impl Write, open: &LocalGraph, fan: Id, post: &Post) -> Result<()> {
    let comments = open.comments()?;
    let write = |author: Id, body: &str, reply_to: Option<CommentId>| {
        let (parent, idempotency_key) = (Parent::post(post.id), None);
        let new = NewComment { parent, author, body: body.into(), reply_to, idempotency_key, depth_max: 0 };
        open.run(comments.comment(new)).map(|written| written.comment.id)
    };
    let question = write(fan, "Is there more?", None)?;
    write(post.author, "There will be.", Some(question))?;
    let (shape, request) = (TreeShape::default(), PageRequest { limit: SHOWN, cursor: None });
    let tree =
        comments.comment_tree(Parent::post(post.id), shape, request, Viewer::default(), Frontier::EMPTY);
    writeln!(out, "\ncomments on the newest post:")?;
    for CommentNode { comment, replies, .. } in open.run(tree)?.items {
        writeln!(out, "  {}: {}", comment.author, comment.body.as_deref().unwrap_or_default())?;
        for CommentNode { comment, .. } in replies {
            writeln!(out, "    {}: {}", comment.author, comment.body.as_deref().unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Checks random pairs and returns the mean time in nanoseconds.
fn time_checks(open: &LocalGraph, graph: PowerLaw) -> u128 {
    let began = Instant::now();
    let mut state = 1u64;
    let mut pick = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        graph.id((state >> 33) % graph.users)
    };
    let check = |edge| open.store.contains_now(KIND, edge, Frontier::EMPTY);
    let found =
        (0..CHECKS).filter(|_| check(Edge { follower: pick(), followee: pick() }) == Some(true)).count();
    let nanoseconds = began.elapsed().as_nanos() / u128::from(CHECKS);
    // The compiler must not skip the checks.
    std::hint::black_box(found);
    nanoseconds
}
