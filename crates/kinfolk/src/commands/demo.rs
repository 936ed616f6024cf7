//! `demo`: a made-up graph in a temporary folder, a few answers from it, then a server to try it with.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use kinfolk::generate::PowerLaw;
use kinfolk_core::bulk::{ImportOptions, Progress};
use kinfolk_core::comments::{CommentId, CommentNode, NewComment, Parent, TreeShape, Viewer};
use kinfolk_core::feeds::{NewPost, Post};
use kinfolk_core::graph::{Edge, ListEntry};
use kinfolk_core::{Clock, EdgeKind, Frontier, Id, PageRequest, SystemClock, Timestamp};

use crate::answer::{Outcome, grouped};
use crate::context::Context;
use crate::place::OpenGraph;
use crate::profile::embedded::Folder;
use crate::serve::{Listeners, Logging, Ready, Server};
use crate::settings::{Configuration, ServerFlags};

const KIND: EdgeKind = EdgeKind::Follow;
const EDGES: u64 = 1_000_000;
const USERS: u64 = 50_000;
const CHECKS: u64 = 1_000_000;
/// Among so many of the newest followers, one is looked for that follows many.
const LOOKED_AT: usize = 100;
/// So many of those whom that one follows post something…
const AUTHORS: usize = 20;
/// …one after another.
const POST_EVERY: Duration = Duration::from_secs(60);
/// How many lines of an answer are shown.
const SHOWN: usize = 3;
/// Edges are spread over this time before now, so that lists have something to be sorted by.
const SPAN: Duration = Duration::from_secs(3 * 365 * 24 * 60 * 60);

/// What `demo` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk demo\n\n\
    Everything is in a temporary folder, which is removed at the end. Ctrl-C ends it.")]
pub struct Arguments {
    /// How many follows to make up
    #[arg(long, value_name = "N", default_value_t = EDGES, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    edges: u64,
    /// Show what the graph answers and end, without serving
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    pub flags: ServerFlags,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let temporary = tempfile::Builder::new()
            .prefix("kinfolk-demo-")
            .tempdir()
            .context("no temporary folder could be made")?;
        let folder = Folder { path: temporary.path().join("graph"), ids: None, ..context.folder.clone() };
        let users = (self.edges / (EDGES / USERS)).max(100);
        let graph = PowerLaw { large: 3, ..PowerLaw::new(self.edges, users, 1) };
        let cast = make(graph, &folder, context)?;
        if !self.once {
            serve(&context.configuration, &folder, cast)?;
        }
        // Dropping the folder would keep quiet about what could not be removed.
        temporary.close().context("the temporary folder could not be removed")?;
        Ok(Outcome::Done)
    }
}

/// Two users that have something to show: one with many followers, and one of the newest of these, who follows many. And a
/// post that was commented on.
#[derive(Clone, Copy)]
struct Cast {
    star: Id,
    fan: Id,
    post: Option<Id>,
}

/// Makes the graph and shows a few answers.
fn make(graph: PowerLaw, folder: &Folder, context: &Context) -> Result<Cast> {
    let mut out = io::stdout();
    let (users, edges) = (grouped(graph.users), grouped(graph.edges));
    writeln!(out, "Making up {users} users with {edges} follows in {}", folder.path.display())?;
    let open = OpenGraph::open_or_create(folder)?;
    let began = Instant::now();
    load(&open, graph, context)?;
    writeln!(out, "Stored, sorted and indexed in {:.1} s\n", began.elapsed().as_secs_f64())?;

    let cast = show(&mut out, &open, graph.id(0))?;
    let newest = show_feed(&mut out, &open, cast.fan)?;
    if let Some(post) = &newest {
        show_thread(&mut out, &open, cast.fan, post)?;
    }
    let cast = Cast { post: newest.map(|post| post.id), ..cast };
    let per_check = time_checks(&open, graph);
    writeln!(out, "{} checks of random pairs took {per_check} ns each, on one core\n", grouped(CHECKS))?;
    open.close()?;
    Ok(cast)
}

/// Serves until Ctrl-C.
fn serve(configuration: &Configuration, folder: &Folder, cast: Cast) -> Result<()> {
    let server = match Server::bind(configuration, folder) {
        Ok(server) => server,
        Err(taken) if taken.downcast_ref::<io::Error>().is_some_and(is_taken) => {
            writeln!(io::stdout(), "{taken:#}: taking free ports instead\n")?;
            let free = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
            Server::with_listeners(configuration, folder, Listeners::bind(free, free)?)?
        }
        Err(error) => return Err(error),
    };
    let logging = Logging::start(configuration)?;
    let served = server.run(|ready| {
        // A reader that goes away is no reason to end.
        let _ = invite(&mut io::stdout(), ready, cast);
    });
    logging.end();
    served
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// Says where the server is and what to try.
fn invite(out: &mut impl Write, ready: &Ready, Cast { star, fan, post }: Cast) -> io::Result<()> {
    let Ready { http, redis, .. } = ready;
    let port = redis.rsplit(':').next().unwrap_or_default();
    let program = std::env::args().next().unwrap_or_else(|| "kinfolk".to_owned());
    let program = Path::new(&program).file_name().map_or_else(String::new, |name| name.display().to_string());
    writeln!(
        out,
        "REST is at {http} (described at {http}/openapi.json), the Redis protocol at {redis}. Try:\n"
    )?;
    writeln!(out, "  curl {http}/v1/users/{fan}/following/{star}")?;
    writeln!(out, "  curl -i -X POST -H 'Kinfolk-Actor: {star}' {http}/v1/users/{fan}/follow")?;
    writeln!(out, "  curl '{http}/v1/users/{fan}/suggestions?limit=3'")?;
    writeln!(out, "  curl '{http}/v1/users/{fan}/feed?limit=3'")?;
    if let Some(post) = post {
        writeln!(out, "  curl '{http}/v1/posts/{post}/comments?view=tree'")?;
    }
    writeln!(out)?;
    writeln!(out, "or, with any Redis client or this program:\n")?;
    writeln!(out, "  redis-cli -p {port} SISMEMBER following:{fan} {star}")?;
    writeln!(out, "  {program} followers {star} --limit 3 --url {http}\n")?;
    writeln!(out, "Ctrl-C ends it and removes everything.")?;
    out.flush()
}

fn load(open: &OpenGraph<Folder>, graph: PowerLaw, context: &Context) -> Result<()> {
    let options = ImportOptions {
        kind: KIND,
        following_limit: None,
        fingerprint: "demo".to_owned(),
        sort_memory: context.folder.settings.sort_memory,
    };
    let mut import = open.store().import(&options)?;
    let start = SystemClock.now().millis().saturating_sub(SPAN.as_millis() as u64);
    for (number, edge) in (0u64..).zip(graph.edges()?) {
        let since = start + number * (SPAN.as_millis() as u64 / graph.edges);
        import.push(edge, Some(Timestamp::from_millis(since)))?;
        if number.is_multiple_of(10_000) {
            context.reporter.report(Progress {
                stage: "making up follows",
                done: number,
                total: Some(graph.edges),
            });
        }
    }
    import.finish(&|progress| context.reporter.report(progress))?;
    context.reporter.finish();
    Ok(())
}

/// Shows a few answers about a user with many followers and one of these.
fn show(out: &mut impl Write, open: &OpenGraph<Folder>, star: Id) -> Result<Cast> {
    let (graph, request) = (open.graph(), PageRequest { limit: LOOKED_AT, cursor: None });
    let newest: Vec<ListEntry> = open.run(graph.followers(KIND, star, request, Frontier::EMPTY))?.items;
    let ids: Vec<Id> = newest.iter().map(|entry| entry.id).collect();
    let counts = open.run(graph.counts(KIND, &ids, Frontier::EMPTY))?;
    let busiest = ids.iter().zip(counts).max_by_key(|(_, counts)| counts.following);
    let fan = busiest.map_or(star, |(&id, _)| id);

    let users = [star, fan];
    for (id, counts) in users.iter().zip(open.run(graph.counts(KIND, &users, Frontier::EMPTY))?) {
        let (following, followers) = (grouped(counts.following), grouped(counts.followers));
        writeln!(out, "user {id} follows {following} and has {followers} followers")?;
    }
    writeln!(out, "the newest followers of user {star}:")?;
    for entry in newest.iter().take(SHOWN) {
        writeln!(out, "  {} since {}", entry.id, entry.since)?;
    }
    writeln!(out, "whom user {fan} may know:")?;
    for found in open.run(open.suggestion_part()?.read(fan, SHOWN, Frontier::EMPTY))?.items {
        writeln!(out, "  {}, whom {} of its followees follow", found.id, found.mutual_count)?;
    }
    Ok(Cast { star, fan, post: None })
}

/// Has some of those whom a user follows post something, and shows the user's feed. Gives its newest post.
fn show_feed(out: &mut impl Write, open: &OpenGraph<Folder>, fan: Id) -> Result<Option<Post>> {
    let (graph, feeds) = (open.graph(), open.feeds()?);
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
    writeln!(out, "the feed of user {fan}:")?;
    let feed = open.run(feeds.feed(fan, request, Frontier::EMPTY))?.items;
    for post in &feed {
        writeln!(out, "  {}, at {}", post.payload.as_deref().unwrap_or_default(), post.created_at)?;
    }
    Ok(feed.into_iter().next())
}

/// Has a user comment on a post and its author answer, and shows what was said.
fn show_thread(out: &mut impl Write, open: &OpenGraph<Folder>, fan: Id, post: &Post) -> Result<()> {
    let comments = open.comments()?;
    let say = |author: Id, body: &str, reply_to: Option<CommentId>| {
        let (parent, idempotency_key) = (Parent::post(post.id), None);
        let new = NewComment { parent, author, body: body.into(), reply_to, idempotency_key, depth_max: 0 };
        open.run(comments.comment(new)).map(|written| written.comment.id)
    };
    let question = say(fan, "Is there more?", None)?;
    say(post.author, "There will be.", Some(question))?;
    let (shape, request) = (TreeShape::default(), PageRequest { limit: SHOWN, cursor: None });
    let tree =
        comments.comment_tree(Parent::post(post.id), shape, request, (Viewer::default(), Frontier::EMPTY));
    writeln!(out, "what was said about the first of them:")?;
    for CommentNode { comment, replies, .. } in open.run(tree)?.items {
        writeln!(out, "  {}: {}", comment.author, comment.body.as_deref().unwrap_or_default())?;
        for CommentNode { comment, .. } in replies {
            writeln!(out, "    {}: {}", comment.author, comment.body.as_deref().unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Checks random pairs; gives the mean nanoseconds of one.
fn time_checks(open: &OpenGraph<Folder>, graph: PowerLaw) -> u128 {
    let began = Instant::now();
    let mut state = 1u64;
    let mut pick = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        graph.id((state >> 33) % graph.users)
    };
    let found = (0..CHECKS)
        .filter(|_| open.store().follows(KIND, Edge { follower: pick(), followee: pick() }))
        .count();
    let nanoseconds = began.elapsed().as_nanos() / u128::from(CHECKS);
    // Used, so that no check can be left out.
    std::hint::black_box(found);
    nanoseconds
}
