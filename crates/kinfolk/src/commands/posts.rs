//! `posts`: a user's own posts. `feed` and `post` print the same entries.

use kinfolk_api::Post;

use super::prelude::*;
use crate::print::excerpt;

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
        self.pages.print(context, |client, page| match client {
            Client::Local(graph) => Ok(kinfolk_api::Posts::from(graph.run(graph.feeds()?.posts_by(
                self.id,
                page,
                &graph.seen,
            ))?)),
            Client::Remote(server) => page_of(server.posts(self.id), page),
        })
    }
}

impl Print for Post {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { id, author, created_at, payload } = self;
        match payload {
            Some(payload) => writeln!(out, "{created_at}  {id}  {author}  {}", excerpt(payload.as_str())),
            None => writeln!(out, "{created_at}  {id}  {author}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Timestamp;

    use super::*;

    fn text(payload: Option<&str>) -> String {
        let (id, author, created_at) = (7.into(), 1.into(), Timestamp::from_millis(5).into());
        let post = Post { id, author, created_at, payload: payload.map(|json| json.to_owned().into()) };
        let mut out = Vec::new();
        post.write_text(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_shows_the_beginning_of_a_payload() {
        assert_eq!(text(None), "1970-01-01T00:00:00.005Z  7  1\n");
        assert_eq!(text(Some("{\"a\":1}")), "1970-01-01T00:00:00.005Z  7  1  {\"a\":1}\n");
    }
}
