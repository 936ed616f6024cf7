//! `posts`: a user's own posts. How a post prints is here too.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::feeds::Post;
use kinfolk_core::{Frontier, Id, Timestamp};
use kinfolk_server::payload;
use serde::Serialize;

use super::arguments::parse_id;
use super::pages::{Page, PageArguments};
use crate::client::Client;
use crate::context::Context;
use crate::print::{Outcome, Print, as_text, excerpt};

/// List a user's own posts, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk posts 7 --limit 10\n  \
    kinfolk posts 7 --all --json\n\n\
    Prints time, id, author and the beginning of the payload. Every page but the last ends with the cursor of the\n\
    next page.")]
pub(crate) struct Posts {
    /// The author
    #[arg(value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Posts {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => graph.run(graph.feeds()?.posts_by(self.id, page, Frontier::EMPTY))?,
                Client::Remote(server) => server.posts("posts", self.id, page)?,
            };
            Ok(Page::<Item>::uncounted(page.items, page.next))
        })
    }
}

/// A post.
#[derive(Serialize)]
pub(crate) struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
    #[serde(serialize_with = "as_text")]
    author: Id,
    #[serde(serialize_with = "as_text")]
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "payload::as_json")]
    payload: Option<Arc<str>>,
}

impl From<Post> for Item {
    fn from(Post { id, author, created_at, payload }: Post) -> Self {
        Self { id, author, created_at, payload }
    }
}

impl Print for Item {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { id, author, created_at, payload } = self;
        match payload {
            Some(payload) => writeln!(out, "{created_at}  {id}  {author}  {}", excerpt(payload)),
            None => writeln!(out, "{created_at}  {id}  {author}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(payload: Option<&str>) -> String {
        let (id, author, created_at) = (Id::Integer(7), Id::Integer(1), Timestamp::from_millis(5));
        let post = Post { id, author, created_at, payload: payload.map(Arc::from) };
        let mut out = Vec::new();
        Item::from(post).write_text(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_shows_the_beginning_of_a_payload() {
        assert_eq!(plain(None), "1970-01-01T00:00:00.005Z  7  1\n");
        assert_eq!(plain(Some("{\"a\":1}")), "1970-01-01T00:00:00.005Z  7  1  {\"a\":1}\n");
    }
}
