//! The state of a run that computes suggestions for everyone, so that a stopped one can go on.
//!
//! A text file with a checksum. A missing or damaged one only means that the next run starts from the beginning.

use std::fs;
use std::path::Path;

use kinfolk_core::suggestions::{Ranking, WalkBounds};
use kinfolk_core::{Id, IdKind, Result, Timestamp};

use crate::disk::files;

const FILE_NAME: &str = "run";
/// A stopped run that began longer ago than this is not gone on with, in milliseconds.
const RESUMABLE_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, if it has looked at all users.
    pub finished_at: Option<Timestamp>,
    pub bounds: WalkBounds,
    /// All users up to and including this one were looked at.
    pub done: Option<Id>,
    /// How many these are.
    pub users: u64,
    /// For how many of them something is stored.
    pub suggested: u64,
}

impl Run {
    /// A run that has done nothing yet.
    pub(crate) fn new(bounds: WalkBounds, started_at: Timestamp) -> Self {
        Self { started_at, finished_at: None, bounds, done: None, users: 0, suggested: 0 }
    }

    /// Whether a run with these bounds that begins now should go on with this one.
    pub(crate) fn is_resumable(&self, bounds: WalkBounds, now: Timestamp) -> bool {
        let age = now.millis().saturating_sub(self.started_at.millis());
        self.finished_at.is_none() && self.bounds == bounds && age <= RESUMABLE_MILLIS
    }

    /// Reads the newest run.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(FILE_NAME)).ok()?;
        let lines = files::open_text(&text)?;
        let field = |name: &str| files::text_field(lines, name);
        let number = |name: &str| field(name)?.parse::<u64>().ok();
        let time = |name: &str| number(name).map(Timestamp::from_millis);
        let per_node = number("per-node").and_then(|most| usize::try_from(most).ok());
        let results = usize::try_from(number("results")?).ok()?;
        let done =
            field("done").map(|text| IdKind::Integer.parse(text).or_else(|_| IdKind::Uuid.parse(text)));
        Some(Self {
            started_at: time("started")?,
            finished_at: time("finished"),
            bounds: WalkBounds { per_node, results, ranking: Ranking::from_name(field("ranking")?)? },
            done: done.transpose().ok()?,
            users: number("users")?,
            suggested: number("suggested")?,
        })
    }

    /// Replaces the newest run.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut lines = format!(
            "started {}\nresults {}\nranking {}\nusers {}\nsuggested {}\n",
            self.started_at.millis(),
            self.bounds.results,
            self.bounds.ranking.name(),
            self.users,
            self.suggested,
        );
        let mut optional = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                lines.push_str(&format!("{name} {value}\n"));
            }
        };
        optional("per-node", self.bounds.per_node.map(|most| most.to_string()));
        optional("done", self.done.map(|id| id.to_string()));
        optional("finished", self.finished_at.map(|at| at.millis().to_string()));
        files::replace_text(&folder.join(FILE_NAME), &lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_damage() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Run::read(folder.path()), None);
        let bounds = WalkBounds { per_node: None, results: 100, ranking: Ranking::AdamicAdar };
        let mut run = Run::new(bounds, Timestamp::from_millis(1_000));
        for (per_node, done) in
            [(None, None), (Some(7), Some(Id::Integer(9))), (None, Some(Id::Uuid(1 << 90)))]
        {
            run = Run { bounds: WalkBounds { per_node, ..bounds }, done, users: 3, ..run };
            run.write(folder.path()).unwrap();
            assert_eq!(Run::read(folder.path()), Some(run.clone()));
        }
        let later = Timestamp::from_millis(1_000 + RESUMABLE_MILLIS);
        assert!(run.is_resumable(run.bounds, later));
        assert!(!run.is_resumable(run.bounds, later.plus_millis(1)));
        assert!(!run.is_resumable(WalkBounds { results: 1, ..run.bounds }, later));
        run.finished_at = Some(later);
        assert!(!run.is_resumable(run.bounds, later));
        run.write(folder.path()).unwrap();
        assert_eq!(Run::read(folder.path()), Some(run));
        let path = folder.path().join(FILE_NAME);
        let text = fs::read_to_string(&path).unwrap().replace("users 3", "users 4");
        fs::write(&path, text).unwrap();
        assert_eq!(Run::read(folder.path()), None);
    }
}
