//! `suggest`: suggestions for everyone, computed and stored. What one user gets of them: `suggestions`.

use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use kinfolk_core::suggestions::{Ranking, SuggestionRunReport};
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::place::{SuggestDone, SuggestWish};
use crate::settings::Value;

/// What `suggest` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk suggest\n  \
    kinfolk suggest --ranking adamic-adar --keep 50\n\n\
    SIGTERM and SIGINT (Ctrl-C) stop it with status 143 or 130; the next run with the same options goes on where it was,\n\
    within a day. A server does all of this by itself, every 12 hours unless suggest.every says otherwise.")]
pub struct Arguments {
    /// What decides which suggestions are stored, and their order: count, jaccard or adamic-adar
    /// [default: suggest.ranking]
    #[arg(long, value_name = "RANKING", value_parser = <Ranking as Value>::parse)]
    ranking: Option<Ranking>,
    /// Look at only so many of those whom a user follows, the most recent ones; 0 for all
    /// [default: suggest.batch_per_node]
    #[arg(long, value_name = "N")]
    per_node: Option<u32>,
    /// How many suggestions to store for each user [default: suggest.keep]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    keep: Option<u16>,
    /// How many threads to use [default: suggest.threads, else one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Start over, even if a run was stopped half-way
    #[arg(long)]
    afresh: bool,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let begin = Instant::now();
        let wish = SuggestWish {
            ranking: self.ranking,
            per_node: self.per_node,
            keep: self.keep,
            threads: self.threads,
            afresh: self.afresh,
        };
        let target = context.place.open()?;
        let SuggestDone { report, stopped_by } = target.suggest(&wish, &context.reporter)?;
        context.reporter.finish();
        target.close()?;
        context.print(&Figures::new(report, begin.elapsed().as_secs_f64()))?;
        Ok(match stopped_by {
            _ if report.complete => Outcome::Done,
            Some(signal) => Outcome::Interrupted(signal),
            None => Outcome::No,
        })
    }
}

#[derive(Serialize)]
struct Figures {
    users: u64,
    suggested: u64,
    resumed: u64,
    complete: bool,
    seconds: f64,
    users_per_second: u64,
}

impl Figures {
    fn new(report: SuggestionRunReport, seconds: f64) -> Self {
        let SuggestionRunReport { users, suggested, resumed, complete } = report;
        let users_per_second = (users as f64 / seconds.max(1e-9)) as u64;
        Self { users, suggested, resumed, complete, seconds, users_per_second }
    }
}

impl Answer for Figures {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let figures = [
            ("users", grouped(self.users)),
            ("suggested", grouped(self.suggested)),
            ("resumed", grouped(self.resumed)),
            ("seconds", format!("{:.2}", self.seconds)),
            ("users/s", grouped(self.users_per_second)),
        ];
        write_figures(out, &figures)?;
        if !self.complete {
            writeln!(out, "stopped half-way; the next run goes on from here")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let report =
            SuggestionRunReport { users: 30_000, suggested: 20_000, resumed: 10_000, complete: false };
        let figures = Figures::new(report, 2.0);
        let mut out = Vec::new();
        figures.write_plain(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        users      30,000
        suggested  20,000
        resumed    10,000
        seconds      2.00
        users/s    15,000
        stopped half-way; the next run goes on from here
        ");
        insta::assert_snapshot!(serde_json::to_string(&figures).unwrap(), @r#"{"users":30000,"suggested":20000,"resumed":10000,"complete":false,"seconds":2.0,"users_per_second":15000}"#);
    }
}
