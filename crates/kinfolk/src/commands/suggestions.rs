//! `suggestions` and `dismiss`: whom a user may know, and whom not to suggest again. For everyone: `suggest`.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::{Id, Timestamp};
use serde::{Serialize, Serializer};

use super::write::Written;
use crate::answer::{Align, Answer, Outcome, as_optional_text, as_text, write_table};
use crate::arguments::parse_id;
use crate::context::Context;
use crate::place::{Suggested, SuggestedUser};

/// What `suggestions` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk suggestions 1 --limit 5\n\n\
    Those whom the most of user 1's followees follow come first: how many they are (mutual), the Adamic-Adar score,\n\
    their share of all neighbours (Jaccard), and up to three of them (via). Without what 'kinfolk suggest' has\n\
    computed, the graph is walked at once, within bounds.")]
pub struct Arguments {
    /// To whom
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: Id,
    /// How many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let suggested = target.suggestions(self.id, self.limit.into())?;
        target.close()?;
        context.print(&Answered::from(suggested))?;
        Ok(Outcome::Done)
    }
}

/// What `dismiss` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk dismiss 1 7\n\n\
    User 7 is not suggested to user 1 again. Dismissing someone again changes nothing and is a success.")]
pub struct DismissArguments {
    /// To whom
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: Id,
    /// Who is not to be suggested
    #[arg(value_name = "TARGET", value_parser = parse_id)]
    target: Id,
}

impl DismissArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let done = target.dismiss(self.id, self.target)?;
        target.close()?;
        let said = match done.changed {
            true => format!("{} is not suggested to {} any more", self.target, self.id),
            false => format!("{} was dismissed by {} already", self.target, self.id),
        };
        context.print(&Written::new(done, said))?;
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Answered {
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    computed_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
    mutual_count: u32,
    score: f64,
    jaccard: f64,
    #[serde(serialize_with = "as_texts")]
    via: Vec<Id>,
}

fn as_texts<S: Serializer>(ids: &[Id], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ids.iter().map(Id::to_string))
}

impl From<Suggested> for Answered {
    fn from(Suggested { items, computed_at }: Suggested) -> Self {
        let item = |SuggestedUser { id, mutual_count, score, jaccard, via }| Item {
            id,
            mutual_count,
            score,
            jaccard,
            via,
        };
        Self { items: items.into_iter().map(item).collect(), computed_at }
    }
}

impl Answer for Answered {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [
            ("id", Align::Left),
            ("mutual", Align::Right),
            ("score", Align::Right),
            ("jaccard", Align::Right),
            ("via", Align::Left),
        ];
        let rows = self.items.iter().map(|item| {
            let via: Vec<String> = item.via.iter().map(Id::to_string).collect();
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
    use super::*;

    #[test]
    fn both_forms() {
        let item = |id, mutual_count, score, via: &[u64]| SuggestedUser {
            id: Id::Integer(id),
            mutual_count,
            score,
            jaccard: score / 100.0,
            via: via.iter().map(|&id| Id::Integer(id)).collect(),
        };
        let items = vec![item(7, 12, 10.25, &[2, 3, 4]), item(1_000, 1, 0.5, &[2])];
        let answered = Answered::from(Suggested { items, computed_at: Some(Timestamp::from_millis(0)) });
        let mut out = Vec::new();
        answered.write_plain(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        id    mutual   score  jaccard  via
        7         12  10.250    0.102  2 3 4
        1000       1   0.500    0.005  2
        computed at 1970-01-01T00:00:00.000Z
        ");
        insta::assert_snapshot!(serde_json::to_string(&answered).unwrap(), @r#"{"items":[{"id":"7","mutual_count":12,"score":10.25,"jaccard":0.1025,"via":["2","3","4"]},{"id":"1000","mutual_count":1,"score":0.5,"jaccard":0.005,"via":["2"]}],"computed_at":"1970-01-01T00:00:00.000Z"}"#);
    }
}
