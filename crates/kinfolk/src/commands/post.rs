//! `post` and `delete-post`: one post, made or deleted, durable when the command ends.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::feeds::NewPost;
use kinfolk_core::{Id, Timestamp};
use kinfolk_server::payload;
use serde::Serialize;

use super::posts::Item;
use super::write::Written;
use crate::answer::{Answer, Outcome};
use crate::arguments::parse_id;
use crate::context::Context;
use crate::place::PostDone;

/// What `post` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk post 1\n  \
    kinfolk post 1 --id 70 --at 2026-11-15T08:00:00Z --payload '{\"title\":\"Hello\"}'\n\n\
    The same post again, by its id or by its key, changes nothing and is a success. The graph is made if there is none.")]
pub struct Arguments {
    /// Who posts
    #[arg(value_name = "AUTHOR", value_parser = parse_id)]
    author: Id,
    /// The post's id [default: one is made, in time order]
    #[arg(long, value_parser = parse_id)]
    id: Option<Id>,
    /// When it was made: RFC 3339 or Unix milliseconds [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
    /// Any JSON, up to 4 KB, that comes with the post
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// A name for this post, so that it can be repeated without an id
    #[arg(long, value_parser = parse_key)]
    key: Option<Arc<str>>,
}

/// What `delete-post` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk delete-post 1 70\n\n\
    Deleting a post again changes nothing and is a success. Its id is not used again.")]
pub struct DeleteArguments {
    /// Whose post it is
    #[arg(value_name = "AUTHOR", value_parser = parse_id)]
    author: Id,
    /// Which post
    #[arg(value_name = "POST", value_parser = parse_id)]
    id: Id,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, id, at: created_at, payload, key: idempotency_key } = self;
        // As a server stores it; how long it may be is for the graph to say.
        let payload = payload.map(|json| payload::compact(json.as_bytes(), usize::MAX)).transpose()?;
        let ids: Vec<Id> = [author].into_iter().chain(id).collect();
        let target = context.place.open_to_add(&ids)?;
        let post = NewPost { id, author, created_at, payload: payload.flatten(), idempotency_key };
        let written = target.register_post(post)?;
        target.close()?;
        context.print(&Registered::from(written))?;
        Ok(Outcome::Done)
    }
}

impl DeleteArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let done = target.delete_post(self.author, self.id)?;
        target.close()?;
        let said = match done.changed {
            true => format!("post {} is deleted", self.id),
            false => format!("post {} was deleted before", self.id),
        };
        context.print(&Written::new(done, said))?;
        Ok(Outcome::Done)
    }
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    let expected = || "expected a time in RFC 3339, such as 2026-11-15T08:00:00Z, or Unix milliseconds";
    Timestamp::parse(text).ok_or_else(|| expected().to_owned())
}

/// What a header can carry, so that a key means the same wherever it is sent.
pub fn parse_key(text: &str) -> Result<Arc<str>, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && text.trim() == text;
    if is_plain {
        Ok(text.into())
    } else {
        Err("a key is of plain ASCII, without blanks around it".to_owned())
    }
}

/// What registering a post did.
#[derive(Serialize)]
struct Registered {
    changed: bool,
    token: String,
    #[serde(flatten)]
    post: Item,
}

impl From<PostDone> for Registered {
    fn from(PostDone { token, post, is_new }: PostDone) -> Self {
        Self { changed: is_new, token, post: post.into() }
    }
}

impl Answer for Registered {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.changed {
            write!(out, "there already: ")?;
        }
        self.post.write_plain(out)?;
        writeln!(out, "token {}", self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_a_header_can_carry() {
        for key in ["a", "a b", "7f!"] {
            assert_eq!(parse_key(key).unwrap().as_ref(), key);
        }
        for key in [" a", "a ", "a\nb", "é"] {
            assert!(parse_key(key).is_err(), "{key:?}");
        }
        assert_eq!(parse_time("5"), Ok(Timestamp::from_millis(5)));
        assert!(parse_time("yesterday").is_err());
    }
}
