//! `demo`: generates a sample graph in a temporary folder, shows a few queries, then serves it. What it prints is in
//! `output`; who writes posts and comments in it is in `cast`, and what they write in `posts` and `discussions`.

mod cast;
mod comments;
mod discussions;
mod follows;
mod output;
mod posts;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kinfolk::generate::PowerLaw;
use kinfolk_api as api;
use kinfolk_core::bulk::{ImportOptions, Progress};
use kinfolk_core::comments::{CommentNode, Parent, TreeShape, Viewer};
use kinfolk_core::feeds::Post;
use kinfolk_core::graph::{CheckStore, Edge};
use kinfolk_core::{Clock, Frontier, PageRequest, SystemClock, Timestamp};

use self::cast::Cast;
use self::output::{Queries, Serving, Shown};
use super::prelude::*;
use crate::client::LocalGraph;
use crate::profile::{LocalProfile, Profile};
use crate::serve::{Listeners, Logging, Server};
use crate::settings::ServerFlags;

const EDGES: u64 = 1_000_000;
const USERS: u64 = 50_000;
const CHECKS: u64 = 1_000_000;
/// How many entries of a list are shown.
const SHOWN: usize = 3;
/// The shape of the comments that are shown.
const SHOWN_TREE: TreeShape = TreeShape { depth: 1, replies: 1 };
/// Edges are spread over this time before now, so that lists have different times to be sorted by.
const SPAN: Duration = Duration::from_secs(3 * 365 * 24 * 60 * 60);

/// Generate a graph in a temporary folder, show some results and serve it
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk demo\n\n\
    The data is in a temporary folder, which is removed at the end. Ctrl-C stops the demo.\n\
    With --json, the results are one JSON document, and another one on the next line has the addresses of the server.")]
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
            serve(context, &profile, sample)?;
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
    /// The post with the most comments.
    post: Id,
}

/// Generates the graph and shows a few queries.
fn generate(graph: PowerLaw, profile: &LocalProfile, context: &Context) -> Result<Sample> {
    let users = graph.users + graph.audience();
    if !context.json {
        let (users, edges) = (grouped(users), grouped(graph.edges));
        writeln!(io::stdout(), "Generating {users} users with {edges} follows in {}", profile.location())?;
    }
    let open = LocalGraph::open_or_create(profile)?;
    let began = Instant::now();
    load(&open, graph, context)?;
    let seconds = began.elapsed().as_secs_f64();

    let cast = Cast::choose(&open, graph.id(0))?;
    follows::write(&open, &cast)?;
    let posts = posts::write(&open, &cast)?;
    comments::write(&open, &cast, &posts)?;
    // The oldest comes first, and the newest has the most comments.
    let post = posts.last().expect("there are posts").id;
    let sample = Sample { celebrity: cast.celebrity, fan: cast.fan, post };
    let queries = Queries::new(&open, sample)?;
    let (feed, comments) = (read_feed(&open, sample.fan)?, read_comments(&open, post)?);
    let (feed, comments) = (from_all(feed), from_all(comments));
    let check_nanoseconds = time_checks(&open, graph);
    open.close()?;
    context.print(&Shown {
        users,
        edges: graph.edges,
        seconds,
        queries,
        feed,
        comments,
        check_nanoseconds,
    })?;
    Ok(sample)
}

/// Serves until Ctrl-C.
fn serve(context: &Context, profile: &LocalProfile, sample: Sample) -> Result<()> {
    let configuration = &context.configuration;
    let server = match Server::bind(configuration, profile) {
        Ok(server) => server,
        Err(taken) if taken.downcast_ref::<io::Error>().is_some_and(is_taken) => {
            if !context.json {
                writeln!(io::stdout(), "{taken:#}: taking free ports instead\n")?;
            }
            let free = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
            Server::with_listeners(configuration, profile, Listeners::bind(free, Some(free))?)?
        }
        Err(error) => return Err(error),
    };
    let logging = Logging::start(configuration)?;
    let served = server.run(|ready| {
        // Serve even if nobody reads the output.
        let _ = context.print(&Serving::new(ready, configuration.http.console, sample));
    });
    logging.end();
    served
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
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

impl Queries {
    /// Queries the graph.
    fn new(open: &LocalGraph, Sample { celebrity, fan, .. }: Sample) -> Result<Self> {
        let (graph, users) = (&open.graph, [celebrity, fan]);
        let request = PageRequest { limit: SHOWN, cursor: None };
        let counts = open.run(graph.counts(KIND, &users, Frontier::EMPTY))?;
        Ok(Self {
            celebrity,
            fan,
            counts: users.into_iter().zip(counts).map(|(id, counts)| api::Counts::new(id, counts)).collect(),
            newest_followers: from_all(
                open.run(graph.followers(KIND, celebrity, request, Frontier::EMPTY))?.items,
            ),
            suggestions: from_all(open.run(open.suggestions()?.read(fan, SHOWN, Frontier::EMPTY))?.items),
        })
    }
}

/// The newest posts of a user's home feed.
fn read_feed(open: &LocalGraph, of: Id) -> Result<Vec<Post>> {
    let request = PageRequest { limit: SHOWN, cursor: None };
    Ok(open.run(open.feeds()?.feed(of, request, Frontier::EMPTY))?.items)
}

/// The first comments on a post.
fn read_comments(open: &LocalGraph, post: Id) -> Result<Vec<CommentNode>> {
    let (comments, request) = (open.comments()?, PageRequest { limit: SHOWN, cursor: None });
    let (post, viewer) = (Parent::post(post), Viewer::default());
    Ok(open.run(comments.comment_tree(post, SHOWN_TREE, request, viewer, Frontier::EMPTY))?.items)
}

fn from_all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

/// Checks random pairs and returns the mean time in nanoseconds.
fn time_checks(open: &LocalGraph, graph: PowerLaw) -> u64 {
    let began = Instant::now();
    let mut state = 1u64;
    let mut pick = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        graph.id((state >> 33) % graph.users)
    };
    let check = |edge| open.store.contains_now(KIND, edge, Frontier::EMPTY);
    let found =
        (0..CHECKS).filter(|_| check(Edge { follower: pick(), followee: pick() }) == Some(true)).count();
    let nanoseconds = began.elapsed().as_nanos() as u64 / CHECKS;
    // The compiler must not skip the checks.
    std::hint::black_box(found);
    nanoseconds
}
