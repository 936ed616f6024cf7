//! `feed` and `posts`: posts of those whom a user follows, or its own, a page or all of them. Making them is in `post`.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::feeds::Post;
use kinfolk_core::{Id, Timestamp};
use kinfolk_server::payload;
use serde::Serialize;

use super::pages::{Page, PageArguments};
use crate::answer::{Answer, Outcome, as_text, begin};
use crate::arguments::parse_id;
use crate::context::Context;
use crate::place::PostList;

/// What a command that lists posts is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk feed 7 --limit 10\n  \
    kinfolk posts 7 --all --json\n\n\
    The lines are time, id, author and the begin of the payload, newest first. A page that is not the last one ends\n\
    with the cursor of the next.")]
pub struct Arguments {
    /// Whose list
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Arguments {
    pub fn run(self, list: PostList, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |target, request| {
            let page = target.posts(list, self.id, request)?;
            Ok(Page::<Item>::uncounted(page.items, page.next))
        })
    }
}

/// A post as it is printed.
#[derive(Serialize)]
pub struct Item {
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

impl Answer for Item {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { id, author, created_at, payload } = self;
        match payload {
            Some(payload) => writeln!(out, "{created_at}  {id}  {author}  {}", begin(payload)),
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
        Item::from(post).write_plain(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_shows_the_begin_of_a_payload() {
        assert_eq!(plain(None), "1970-01-01T00:00:00.005Z  7  1\n");
        assert_eq!(plain(Some("{\"a\":1}")), "1970-01-01T00:00:00.005Z  7  1  {\"a\":1}\n");
    }
}
