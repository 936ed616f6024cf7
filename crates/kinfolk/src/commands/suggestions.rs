//! `suggestions`: users that a user may want to follow. `suggest` computes them for all users.

use kinfolk_api as api;

use super::prelude::*;
use crate::print::{Align, write_table};

/// Suggest users for a user to follow, best first
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk suggestions 1 --limit 5\n\n\
    Prints for each candidate how many of user 1's followees follow it (mutual), its Adamic-Adar score, its Jaccard\n\
    similarity, and up to three of those followees (via). If 'kinfolk suggest' has computed no fresh suggestions, they\n\
    are computed on request, within bounds.")]
pub(crate) struct Suggestions {
    /// The user
    #[arg(value_parser = parse_id)]
    id: Id,
    /// Maximum number of suggestions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
}

impl Suggestions {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let (id, limit) = (self.id, self.limit.into());
        let suggestions: api::Suggestions = context.call(|client| match client {
            Client::Local(graph) => Ok(graph.run(graph.suggestions()?.read(id, limit, &graph.seen))?.into()),
            Client::Remote(server) => Ok(server.suggestions(id, limit)?),
        })?;
        context.print(&suggestions)
    }
}

impl Print for api::Suggestions {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [
            ("id", Align::Left),
            ("mutual", Align::Right),
            ("score", Align::Right),
            ("jaccard", Align::Right),
            ("via", Align::Left),
        ];
        let rows = self.items.iter().map(|item| {
            let via: Vec<String> = item.via.iter().map(ToString::to_string).collect();
            [
                item.id.to_string(),
                item.mutual_count.to_string(),
                format!("{:.3}", item.score),
                format!("{:.3}", item.jaccard),
                via.join(" "),
            ]
        });
        if self.items.is_empty() {
            writeln!(out, "nobody")?;
        } else {
            write_table(out, columns, rows)?;
        }
        match self.computed_at {
            Some(computed_at) => writeln!(out, "computed at {computed_at}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_api::SuggestedUser;
    use kinfolk_core::Timestamp;

    use super::*;

    #[test]
    fn both_forms() {
        let item = |id: u64, mutual_count, score, via: &[u64]| SuggestedUser {
            id: id.into(),
            mutual_count,
            score,
            jaccard: score / 100.0,
            via: via.iter().map(|&id| id.into()).collect(),
        };
        let items = vec![item(7, 12, 10.25, &[2, 3, 4]), item(1_000, 1, 0.5, &[2])];
        let computed_at = Some(Timestamp::from_millis(0).into());
        let suggested = api::Suggestions { items, computed_at };
        let mut out = Vec::new();
        suggested.write_text(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        id    mutual   score  jaccard  via
        7         12  10.250    0.102  2 3 4
        1000       1   0.500    0.005  2
        computed at 1970-01-01T00:00:00.000Z
        ");
        insta::assert_snapshot!(serde_json::to_string(&suggested).unwrap(), @r#"{"items":[{"id":"7","mutual_count":12,"score":10.25,"jaccard":0.1025,"via":["2","3","4"]},{"id":"1000","mutual_count":1,"score":0.5,"jaccard":0.005,"via":["2"]}],"computed_at":"1970-01-01T00:00:00.000Z"}"#);
    }
}
