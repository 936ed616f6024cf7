//! `post`: registers a post, durably.

use std::sync::Arc;

use kinfolk_api::{self as api, Payload, Written};
use kinfolk_core::Timestamp;
use kinfolk_core::feeds::NewPost;
use kinfolk_server::payload;

use super::prelude::*;

/// Register a post
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk post 1\n  \
    kinfolk post 1 --id 70 --at 2026-11-15T08:00:00Z --payload '{\"title\":\"Hello\"}'\n\n\
    Registering the same post again, by id or by key, succeeds and changes nothing. The graph is created if there\n\
    is none.")]
pub(crate) struct Post {
    /// The author
    #[arg(value_parser = parse_id)]
    author: Id,
    /// The post's id [default: a new id, in time order]
    #[arg(long, value_parser = parse_id)]
    id: Option<Id>,
    /// The creation time: RFC 3339 or Unix milliseconds [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
    /// Any JSON to store with the post, up to 4 KB
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// An idempotency key: repeating the command with it is safe without an id
    #[arg(long, value_parser = parse_key)]
    key: Option<Arc<str>>,
}

impl Post {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, id, at: created_at, payload, key: idempotency_key } = self;
        // Compact, as a server stores it. The graph limits its length.
        let payload = payload.map(|json| payload::compact(json.as_bytes(), usize::MAX)).transpose()?;
        let ids: Vec<Id> = [author].into_iter().chain(id).collect();
        let payload = payload.flatten();
        let written = context.call_or_create(&ids, |client| match client {
            Client::Local(graph) => {
                let new = NewPost { id, author, created_at, payload, idempotency_key };
                let registered = graph.run(graph.feeds()?.register_post(new))?;
                let outcome = graph.written(registered.position, registered.is_new);
                Ok(Written::<api::Post>::new(outcome, registered.post.into()))
            }
            Client::Remote(server) => {
                let new = api::NewPost {
                    id: id.map(Into::into),
                    author: None,
                    created_at: created_at.map(Into::into),
                    payload: payload.map(Payload),
                };
                Ok(server.acting_as(author).register_post(&new, idempotency_key.as_deref())?)
            }
        })?;
        context.print(&written)
    }
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    let expected = || "expected a time in RFC 3339, such as 2026-11-15T08:00:00Z, or Unix milliseconds";
    Timestamp::parse(text).ok_or_else(|| expected().to_owned())
}

/// A written post or comment.
impl<T: Print> Print for Written<T> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.changed {
            write!(out, "there already: ")?;
        }
        self.item.write_text(out)?;
        writeln!(out, "token {}", self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_or_milliseconds() {
        assert_eq!(parse_time("5"), Ok(Timestamp::from_millis(5)));
        assert!(parse_time("yesterday").is_err());
    }
}
