//! `comment`: writes a comment, durably.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use kinfolk_api::{self as api, Written};
use kinfolk_core::comments::{CommentId, NewComment, Parent};

use super::prelude::*;

/// The maximum size of standard input: far more than a comment may have.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Write a comment on a post
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk comment 1 70 'What a view!'\n  \
    kinfolk comment 1 70 --reply-to 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b - < answer.txt\n\n\
    Writing the same comment again with its key succeeds, changes nothing and prints the original comment.")]
pub(crate) struct Comment {
    /// The author
    #[arg(value_parser = parse_id)]
    author: Id,
    /// The post
    #[arg(value_parser = parse_id)]
    post: Id,
    /// The body; '-' reads standard input
    #[arg(value_name = "TEXT")]
    body: String,
    /// The comment to reply to
    #[arg(long, value_name = "COMMENT", value_parser = parse_comment_id)]
    reply_to: Option<CommentId>,
    /// An idempotency key: repeating the command with it is safe
    #[arg(long, value_parser = parse_key)]
    key: Option<Arc<str>>,
}

impl Comment {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, post, body, reply_to, key: idempotency_key } = self;
        let body = read_body(body, io::stdin())?;
        let written = context.call(|client| match client {
            Client::Local(graph) => {
                // The graph limits the depth.
                let (parent, depth_max) = (Parent::post(post), u8::MAX);
                let new = NewComment { parent, author, body, reply_to, idempotency_key, depth_max };
                let comment = graph.run(graph.comments()?.comment(new))?;
                let outcome = graph.written(comment.position, comment.is_new);
                Ok(Written::<api::Comment>::new(outcome, comment.comment.into()))
            }
            Client::Remote(server) => {
                let new = api::NewComment { body: body.to_string(), reply_to: reply_to.map(Into::into) };
                Ok(server.acting_as(author).write_comment(post, &new, idempotency_key.as_deref())?)
            }
        })?;
        context.print(&written)
    }
}

/// The body of a comment: the argument, or standard input for `-`, without its last line end.
pub(crate) fn read_body(argument: String, input: impl Read) -> Result<Arc<str>> {
    if argument != "-" {
        return Ok(argument.into());
    }
    let mut text = String::new();
    let could_not = "could not read the body from standard input";
    input.take(INPUT_BYTES_MAX + 1).read_to_string(&mut text).context(could_not)?;
    if text.len() as u64 > INPUT_BYTES_MAX {
        bail!("standard input is too long for a comment");
    }
    let line = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    Ok(line.unwrap_or(&text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_argument_or_standard_input() {
        let read = |argument: &str, input: &[u8]| read_body(argument.to_owned(), input);
        for (argument, input, body) in [
            ("a\n", "unread", "a\n"),
            ("-", "a", "a"),
            ("-", "a\nb\n", "a\nb"),
            ("-", "a\r\n", "a"),
            ("-", "a\n\n", "a\n"),
            ("-", "", ""),
        ] {
            assert_eq!(&*read(argument, input.as_bytes()).unwrap(), body, "{argument:?} {input:?}");
        }
        assert!(read("-", b"\xff").is_err());
        assert!(read_body("-".to_owned(), io::repeat(b'x')).is_err());
    }
}
