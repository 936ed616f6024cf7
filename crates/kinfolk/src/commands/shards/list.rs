//! `shards`: every shard with its host, and the moves under way.

use super::super::prelude::*;
use crate::print::{Align, write_table};
use crate::profile::fleet::{FleetProfile, MoveStatus, MoveStep, ShardStatus};

pub(super) fn run(context: &Context, profile: &FleetProfile) -> Result<Outcome> {
    let (status, moves) = profile.shards()?;
    let document = ShardsDocument {
        shards: status.shards.iter().map(ShardLine::new).collect(),
        moves: moves.into_iter().map(MoveLine::new).collect(),
    };
    context.print(&document)
}

#[derive(Serialize)]
struct ShardsDocument {
    shards: Vec<ShardLine>,
    moves: Vec<MoveLine>,
}

#[derive(Serialize)]
struct ShardLine {
    shard: u16,
    host: String,
    /// The newest change of its log. Missing while its host does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<u64>,
    /// Changes that some host does not show yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
}

impl ShardLine {
    fn new(status: &ShardStatus) -> Self {
        Self {
            shard: status.shard.0,
            host: status.host.clone(),
            newest: status.newest.map(|newest| newest.0),
            behind: status.projection_behind(),
        }
    }
}

/// A move that is not over.
#[derive(Serialize)]
pub(super) struct MoveLine {
    shard: u16,
    from: String,
    to: String,
    step: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_copied: Option<u64>,
}

impl MoveLine {
    fn new(status: MoveStatus) -> Self {
        let (step, rows_copied) = match status.step {
            Some(MoveStep::Copying(rows)) => ("copying", Some(rows)),
            Some(MoveStep::Following) => ("following", None),
            Some(MoveStep::HandingOver) => ("handing over", None),
            Some(MoveStep::CleaningUp) => ("cleaning up", None),
            None => ("unknown", None),
        };
        Self { shard: status.shard.0, from: status.from, to: status.to, step, rows_copied }
    }
}

impl Print for ShardsDocument {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [
            ("shard", Align::Right),
            ("host", Align::Left),
            ("newest", Align::Right),
            ("behind", Align::Right),
        ];
        let number = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), grouped);
        let rows = self.shards.iter().map(|line| {
            [line.shard.to_string(), line.host.clone(), number(line.newest), number(line.behind)]
        });
        write_table(out, columns, rows)?;
        if self.moves.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let columns = [
            ("moving", Align::Right),
            ("from", Align::Left),
            ("to", Align::Left),
            ("step", Align::Left),
            ("rows copied", Align::Right),
        ];
        let rows = self.moves.iter().map(|line| {
            let copied = line.rows_copied.map_or_else(|| "-".to_owned(), grouped);
            [line.shard.to_string(), line.from.clone(), line.to.clone(), line.step.to_owned(), copied]
        });
        write_table(out, columns, rows)?;
        writeln!(
            out,
            "\na move that no process works on is resumed by 'kinfolk shards move SHARD HOST', or given up by 'kinfolk shards move SHARD --abort'"
        )
    }
}
