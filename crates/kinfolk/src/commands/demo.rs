//! `demo`: a made-up graph in a temporary folder, a few answers from it, and what to try next.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use kinfolk::generate::PowerLaw;
use kinfolk_core::graph::{Counts, Edge, ListPage, PageRequest};
use kinfolk_core::{Clock, Id, SystemClock, Timestamp};
use kinfolk_embedded::{ImportOptions, Progress};

use super::KIND;
use crate::answer::{Outcome, grouped};
use crate::context::Context;
use crate::target::{Folder, OpenGraph};

const EDGES: u64 = 1_000_000;
const USERS: u64 = 50_000;
const CHECKS: u64 = 1_000_000;
/// Edges are spread over this time before now, so that lists have something to be sorted by.
const SPAN: Duration = Duration::from_secs(3 * 365 * 24 * 60 * 60);

/// What `demo` is given: nothing.
#[derive(Debug, Args)]
pub struct Arguments {}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let path = std::env::temp_dir().join(format!("kinfolk-demo-{}", std::process::id()));
        let graph = PowerLaw { large: 3, ..PowerLaw::new(EDGES, USERS, 1) };
        let mut out = io::stdout();
        writeln!(
            out,
            "Making up {} users with {} follows in {}",
            grouped(USERS),
            grouped(EDGES),
            path.display()
        )?;
        let folder =
            Folder { path: path.clone(), ids: None, settings: context.target.folder().settings.clone() };
        let open = folder.open_or_create()?;
        let began = Instant::now();
        load(&open, graph, context)?;
        writeln!(out, "Stored, sorted and indexed in {:.1} s\n", began.elapsed().as_secs_f64())?;

        let star = graph.id(0);
        let page =
            open.run(open.graph().followers(KIND, star, PageRequest { limit: 3, cursor: None }, None))?;
        let fan = page.items.first().map_or(star, |entry| entry.id);
        let counts = open.run(open.graph().counts(KIND, &[star, fan], None))?;
        show(&mut out, star, fan, &page, &counts)?;
        let per_check = time_checks(&open, graph);
        writeln!(out, "{} checks of random pairs took {per_check} ns each, on one core\n", grouped(CHECKS))?;
        let written = open.run(open.graph().follow(KIND, star, fan))?;
        writeln!(out, "{star} follows {fan} back, durably; the consistency token is {}\n", written.token)?;
        open.close()?;

        let program = std::env::args().next().unwrap_or_else(|| "kinfolk".to_owned());
        let data = path.display();
        writeln!(out, "The folder is yours to try; remove it when you are done:\n")?;
        writeln!(out, "  {program} check {fan} {star} --data {data}")?;
        writeln!(out, "  {program} friends {star} --data {data} --json")?;
        writeln!(out, "  {program} export - --data {data} | head")?;
        Ok(Outcome::Done)
    }
}

fn load(open: &OpenGraph, graph: PowerLaw, context: &Context) -> Result<()> {
    let options = ImportOptions {
        kind: KIND,
        following_limit: None,
        fingerprint: "demo".to_owned(),
        sort_memory: context.target.folder().settings.sort_memory,
    };
    let mut import = open.store().import(&options)?;
    let start = SystemClock.now().millis().saturating_sub(SPAN.as_millis() as u64);
    for (number, edge) in (0u64..).zip(graph.edges()?) {
        let since = start + number * (SPAN.as_millis() as u64 / EDGES);
        import.push(edge, Some(Timestamp::from_millis(since)))?;
        if number.is_multiple_of(10_000) {
            context.reporter.report(Progress {
                stage: "making up follows",
                done: number,
                total: Some(EDGES),
            });
        }
    }
    import.finish(&|progress| context.reporter.report(progress))?;
    context.reporter.finish();
    Ok(())
}

fn show(out: &mut impl Write, star: Id, fan: Id, page: &ListPage, counts: &[Counts]) -> io::Result<()> {
    for (id, counts) in [star, fan].iter().zip(counts) {
        let (following, followers) = (grouped(counts.following), grouped(counts.followers));
        writeln!(out, "user {id} follows {following} and has {followers} followers")?;
    }
    writeln!(out, "the newest followers of user {star}:")?;
    for entry in &page.items {
        writeln!(out, "  {} since {}", entry.id, entry.since)?;
    }
    Ok(())
}

/// Checks random pairs; gives the mean nanoseconds of one.
fn time_checks(open: &OpenGraph, graph: PowerLaw) -> u128 {
    let began = Instant::now();
    let mut state = 1u64;
    let mut pick = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        graph.id((state >> 33) % USERS)
    };
    let found = (0..CHECKS)
        .filter(|_| open.store().follows(KIND, Edge { follower: pick(), followee: pick() }))
        .count();
    let nanoseconds = began.elapsed().as_nanos() / u128::from(CHECKS);
    // Used, so that no check can be left out.
    std::hint::black_box(found);
    nanoseconds
}
