//! `suggest`: computes suggestions for all users and stores them. `suggestions` reads those of one user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use kinfolk_api::SuggestOutcome;
use kinfolk_client::{SuggestRun, blocking};
use kinfolk_core::bulk::Progress;
use kinfolk_core::suggestions::{Ranking, SuggestionRunRequest, SuggestionStore, WalkBounds};
use tokio::sync::watch;

use super::prelude::*;
use crate::progress::{Reporter, SUGGESTING};
use crate::settings::{Value, bound};
use crate::signals::{Signals, StopSignal};

/// Compute suggestions for all users
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk suggest\n  \
    kinfolk suggest --ranking adamic-adar --keep 50\n\n\
    SIGTERM and SIGINT (Ctrl-C) stop it with status 143 or 130; the next run with the same options resumes within a day.\n\
    A server computes suggestions by itself, every 12 hours unless suggest.every says otherwise.")]
pub(crate) struct Suggest {
    /// Which suggestions to store, and their order: count, jaccard or adamic-adar [default: suggest.ranking]
    #[arg(long, value_name = "RANKING", value_parser = <Ranking as Value>::parse)]
    ranking: Option<Ranking>,
    /// Maximum number of followees of a user to consider, the most recent ones; 0 for all
    /// [default: suggest.batch_per_node]
    #[arg(long = "batch-per-node", alias = "per-node", value_name = "N")]
    per_node: Option<u32>,
    /// Number of suggestions to store for each user [default: suggest.keep]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    keep: Option<u16>,
    /// Number of threads [default: suggest.threads, else one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Start over instead of resuming a stopped run
    #[arg(long)]
    afresh: bool,
}

impl Suggest {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let begin = Instant::now();
        let Run { outcome, stopped_by } = context.call(|client| match client {
            Client::Local(graph) => {
                let request = self.request(graph.profile.everyone);
                graph.run(compute(graph.suggestion_store()?, request, &context.reporter))
            }
            Client::Remote(server) => self.send(server, &context.reporter),
        })?;
        context.reporter.finish();
        let is_complete = outcome.complete;
        context.print(&SuggestStats::new(outcome, begin.elapsed().as_secs_f64()))?;
        Ok(match stopped_by {
            _ if is_complete => Outcome::Done,
            Some(signal) => Outcome::Interrupted(signal),
            None => Outcome::No,
        })
    }

    /// The options, and the graph's settings where there are none.
    fn request(&self, settings: SuggestionRunRequest) -> SuggestionRunRequest {
        let SuggestionRunRequest { bounds, threads, .. } = settings;
        SuggestionRunRequest {
            bounds: WalkBounds {
                per_node: self.per_node.map_or(bounds.per_node, bound),
                results: self.keep.map_or(bounds.results, usize::from),
                ranking: self.ranking.unwrap_or(bounds.ranking),
            },
            threads: self.threads.map_or(threads, usize::from),
            afresh: self.afresh,
        }
    }

    fn send(&self, server: &blocking::Client, reporter: &Reporter) -> Result<Run> {
        let Self { ranking, per_node, keep, threads, afresh } = *self;
        let run = SuggestRun { ranking, per_node, keep, threads, afresh };
        let outcome = server.suggest(&run, |progress| reporter.report_remote(progress))?;
        Ok(Run { outcome, stopped_by: None })
    }
}

/// A run over all users.
struct Run {
    outcome: SuggestOutcome,
    /// The signal that stopped it.
    stopped_by: Option<StopSignal>,
}

/// Computes on a thread of its own while this one waits for signals: the first stops it between two users.
async fn compute<S: SuggestionStore>(
    store: Arc<S>,
    request: SuggestionRunRequest,
    reporter: &Reporter,
) -> Result<Run> {
    let mut signals = Signals::new().context("could not listen for signals")?;
    let (sender, mut progress) = watch::channel(None);
    let stop = Arc::new(AtomicBool::new(false));
    let is_stopped = Arc::clone(&stop);
    let mut work = tokio::task::spawn_blocking(move || {
        store.compute_suggestions(request, &|done, total| {
            sender.send_replace(Some(Progress { stage: SUGGESTING, done, total: Some(total) }));
            !is_stopped.load(Ordering::Relaxed)
        })
    });
    let mut stopped_by = None;
    loop {
        tokio::select! {
            report = &mut work => {
                let report = report.context("the computation failed")??;
                return Ok(Run { outcome: report.into(), stopped_by });
            }
            signal = signals.next_stop(), if stopped_by.is_none() => {
                stopped_by = Some(signal);
                stop.store(true, Ordering::Relaxed);
                Signals::end_at_once_on_the_next(Some(Instant::now())).context("could not start a thread")?;
            }
            Ok(()) = progress.changed() => {
                if let Some(progress) = *progress.borrow_and_update() {
                    reporter.report(progress);
                }
            }
        }
    }
}

#[derive(Serialize)]
struct SuggestStats {
    #[serde(flatten)]
    outcome: SuggestOutcome,
    seconds: f64,
    users_per_second: u64,
}

impl SuggestStats {
    fn new(outcome: SuggestOutcome, seconds: f64) -> Self {
        let users_per_second = (outcome.users as f64 / seconds.max(1e-9)) as u64;
        Self { outcome, seconds, users_per_second }
    }
}

impl Print for SuggestStats {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let stats = [
            ("users", grouped(self.outcome.users)),
            ("suggested", grouped(self.outcome.suggested)),
            ("resumed", grouped(self.outcome.resumed)),
            ("seconds", format!("{:.2}", self.seconds)),
            ("users/s", grouped(self.users_per_second)),
        ];
        write_stats(out, &stats)?;
        if !self.outcome.complete {
            writeln!(out, "stopped half-way; the next run goes on from here")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_options_come_from_the_settings() {
        let none = Suggest { ranking: None, per_node: None, keep: None, threads: None, afresh: false };
        let bounds = WalkBounds { per_node: Some(5), results: 7, ranking: Ranking::Jaccard };
        let settings = SuggestionRunRequest { bounds, threads: 3, afresh: false };
        assert_eq!(none.request(settings), settings);

        let ranking = Some(Ranking::AdamicAdar);
        let all = Suggest { ranking, per_node: Some(0), keep: Some(9), threads: Some(2), afresh: true };
        let bounds = WalkBounds { per_node: None, results: 9, ranking: Ranking::AdamicAdar };
        assert_eq!(all.request(settings), SuggestionRunRequest { bounds, threads: 2, afresh: true });
    }

    #[test]
    fn both_forms() {
        let outcome = SuggestOutcome { users: 30_000, suggested: 20_000, resumed: 10_000, complete: false };
        let stats = SuggestStats::new(outcome, 2.0);
        let mut out = Vec::new();
        stats.write_text(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        users      30,000
        suggested  20,000
        resumed    10,000
        seconds      2.00
        users/s    15,000
        stopped half-way; the next run goes on from here
        ");
        insta::assert_snapshot!(serde_json::to_string(&stats).unwrap(), @r#"{"users":30000,"suggested":20000,"resumed":10000,"complete":false,"seconds":2.0,"users_per_second":15000}"#);
    }
}
