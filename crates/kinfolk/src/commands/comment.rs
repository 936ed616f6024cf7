//! `comment` and `edit-comment`: one text, written or replaced, durable when the command ends. Taking comments back is in
//! `moderate`.

use std::io::{self, Read, Write};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::comments::{CommentEdit, CommentId, NewComment, Parent};
use serde::Serialize;

use super::comments::Item;
use super::post::parse_key;
use crate::answer::{Answer, Outcome};
use crate::arguments::{parse_comment_id, parse_id};
use crate::context::Context;
use crate::place::CommentDone;

/// How much of standard input is taken: far more than a comment may have.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// What `comment` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk comment 1 70 'What a view!'\n  \
    kinfolk comment 1 70 --reply-to 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b - < answer.txt\n\n\
    The same comment again, by its key, changes nothing, is a success, and shows the comment as it was first.")]
pub struct Arguments {
    /// Who comments
    #[arg(value_name = "AUTHOR", value_parser = parse_id)]
    author: Id,
    /// Which post
    #[arg(value_name = "POST", value_parser = parse_id)]
    post: Id,
    /// What to say; '-' is standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// The comment that this one answers
    #[arg(long, value_name = "COMMENT", value_parser = parse_comment_id)]
    reply_to: Option<CommentId>,
    /// A name for this comment, so that it can be repeated
    #[arg(long, value_parser = parse_key)]
    key: Option<Arc<str>>,
}

/// What `edit-comment` is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kinfolk edit-comment 1 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b 1 'What a view.'\n\n\
    An edit is refused if somebody else's came first: the version is not the current one then."
)]
pub struct EditArguments {
    /// Whose comment it is
    #[arg(value_name = "AUTHOR", value_parser = parse_id)]
    author: Id,
    /// Which comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    /// The version that the edit is based on; a new comment has version 1
    #[arg(value_name = "VERSION", value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
    /// What to say from now on; '-' is standard input
    #[arg(value_name = "TEXT")]
    text: String,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, post, text, reply_to, key: idempotency_key } = self;
        let (parent, body) = (Parent::post(post), read_text(text, io::stdin())?);
        let target = context.place.open()?;
        // How deep it may be is for the graph to say.
        let wish = NewComment { parent, author, body, reply_to, idempotency_key, depth_max: u8::MAX };
        let written = target.comment(wish)?;
        target.close()?;
        context.print(&Written::from(written))?;
        Ok(Outcome::Done)
    }
}

impl EditArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, id, version, text } = self;
        let body = read_text(text, io::stdin())?;
        let target = context.place.open()?;
        let written = target.edit_comment(author, CommentEdit { id, version, body })?;
        target.close()?;
        context.print(&Written::from(written))?;
        Ok(Outcome::Done)
    }
}

/// The text that was given, or what `-` stands for, without the line end that a last line has.
fn read_text(given: String, input: impl Read) -> Result<Arc<str>> {
    if given != "-" {
        return Ok(given.into());
    }
    let mut text = String::new();
    let could_not = "the text could not be read from standard input";
    input.take(INPUT_BYTES_MAX + 1).read_to_string(&mut text).context(could_not)?;
    if text.len() as u64 > INPUT_BYTES_MAX {
        bail!("standard input is far too long for a comment");
    }
    let line = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    Ok(line.unwrap_or(&text).into())
}

/// What writing a comment did.
#[derive(Serialize)]
struct Written {
    changed: bool,
    token: String,
    #[serde(flatten)]
    comment: Item,
}

impl From<CommentDone> for Written {
    fn from(CommentDone { token, comment, is_new }: CommentDone) -> Self {
        Self { changed: is_new, token, comment: comment.into() }
    }
}

impl Answer for Written {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.changed {
            write!(out, "there already: ")?;
        }
        self.comment.write_plain(out)?;
        writeln!(out, "token {}", self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_given_or_read() {
        let read = |given: &str, input: &[u8]| read_text(given.to_owned(), input);
        for (given, input, text) in [
            ("a\n", "unread", "a\n"),
            ("-", "a", "a"),
            ("-", "a\nb\n", "a\nb"),
            ("-", "a\r\n", "a"),
            ("-", "a\n\n", "a\n"),
            ("-", "", ""),
        ] {
            assert_eq!(&*read(given, input.as_bytes()).unwrap(), text, "{given:?} {input:?}");
        }
        assert!(read("-", b"\xff").is_err());
        assert!(read_text("-".to_owned(), io::repeat(b'x')).is_err());
    }
}
