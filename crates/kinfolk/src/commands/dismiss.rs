//! `dismiss`: excludes a user from another user's suggestions, durably.

use super::prelude::*;

/// Never suggest one user to another again
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk dismiss 1 7\n\n\
    User 7 is not suggested to user 1 again. Dismissing a user again succeeds and changes nothing.")]
pub(crate) struct Dismiss {
    /// The user who gets the suggestions
    #[arg(value_parser = parse_id)]
    id: Id,
    /// The user to exclude
    #[arg(value_parser = parse_id)]
    target: Id,
}

impl Dismiss {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { id, target } = self;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => Ok(graph.changed(graph.run(graph.suggestions()?.dismiss(id, target))?)),
            Client::Remote(server) => Ok(server.acting_as(id).dismiss(id, target)?),
        })?;
        let message = match outcome.changed {
            true => format!("{target} is not suggested to {id} any more"),
            false => format!("{target} was dismissed by {id} already"),
        };
        context.print_written(outcome, message)
    }
}
