//! Comments as a server exports them: CSV with quoted bodies, read one by one.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, anyhow, bail};
use kinfolk_core::bulk::Progress;
use kinfolk_core::comments::{Comment, CommentId, CommentStatus, Moderator, Parent, ParentKind};
use kinfolk_core::{IdKind, Timestamp};

use crate::commands::arguments::parse_id;
use crate::output::{COMMENTS_HEADER, Comments};

/// The number of columns.
const COLUMNS: usize = 13;
/// Longer than any line of an export.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Reads comments from lines.
pub(crate) struct CommentReader<R> {
    input: BufReader<R>,
    first: Option<Comment>,
    done: u64,
}

impl<R: Read> CommentReader<R> {
    /// Reads the header and the first comment.
    pub(crate) fn new(input: R) -> Result<Self> {
        let mut reader = Self { input: BufReader::with_capacity(64 << 10, input), first: None, done: 0 };
        let header = reader.fields()?.map(|fields| fields.join(","));
        if header.as_deref() != Some(COMMENTS_HEADER) {
            bail!("the server's response does not have the expected columns");
        }
        reader.first = reader.read()?;
        Ok(reader)
    }

    /// The table of the comments: the first one has the kind of ids.
    pub(crate) fn table(&self) -> Comments {
        Comments { ids: self.first.as_ref().map_or(IdKind::Integer, |first| first.author.kind()) }
    }

    /// The next comment.
    pub(crate) fn next(&mut self) -> Result<Option<Comment>> {
        let next = match self.first.take() {
            None if self.done > 0 => self.read()?,
            first => first,
        };
        self.done += u64::from(next.is_some());
        Ok(next)
    }

    /// The number of comments read.
    pub(crate) fn progress(&self) -> Progress {
        Progress { stage: "exporting", done: self.done, total: None }
    }

    fn read(&mut self) -> Result<Option<Comment>> {
        let Some(fields) = self.fields()? else { return Ok(None) };
        let parsed = <[String; COLUMNS]>::try_from(fields).ok().and_then(parse);
        let number = self.done + 1;
        parsed.map(Some).ok_or_else(|| anyhow!("comment {number} of the server's response is malformed"))
    }

    /// The fields of the next line, which continues while quotes are open. None at the end.
    fn fields(&mut self) -> Result<Option<Vec<String>>> {
        let (mut fields, mut quoted, mut before) = (vec![Vec::new()], false, 0);
        let mut length = 0;
        loop {
            let available = self.input.fill_buf().context("could not read the server's response")?;
            let Some(&byte) = available.first() else {
                return if length == 0 { Ok(None) } else { bail!("the server's response was truncated") };
            };
            self.input.consume(1);
            length += 1;
            match byte {
                b',' if !quoted => fields.push(Vec::new()),
                b'\n' if !quoted => break,
                b'"' => {
                    // A doubled quote stands for one quote.
                    if let (false, b'"', Some(field)) = (quoted, before, fields.last_mut()) {
                        field.push(b'"');
                    }
                    quoted = !quoted;
                }
                _ => fields.last_mut().into_iter().for_each(|field| field.push(byte)),
            }
            before = byte;
            if length > LINE_BYTES_MAX {
                bail!("a line of the server's response is too long");
            }
        }
        let texts = fields.into_iter().map(String::from_utf8).collect::<Result<_, _>>();
        Ok(Some(texts.context("the server's response is not UTF-8")?))
    }
}

/// A moderator: `user:` and an id, or `key:` and the name of a service's key.
fn moderator(text: &str) -> Option<Moderator> {
    match text.split_once(':')? {
        ("user", id) => parse_id(id).ok().map(Moderator::User),
        ("key", name) => Some(Moderator::Service(name.into())),
        _ => None,
    }
}

fn parse(fields: [String; COLUMNS]) -> Option<Comment> {
    let [
        id,
        parent_kind,
        parent,
        author,
        reply_to,
        depth,
        created_at,
        version,
        edited_at,
        status,
        body,
        reason,
        removed_by,
    ] = fields;
    let present = |text: String| Some(text).filter(|text| !text.is_empty());
    let reply_to = present(reply_to).map(|text| CommentId::parse(&text).ok());
    let edited_at = present(edited_at).map(|text| Timestamp::parse(&text));
    let removed_by = present(removed_by).map(|text| moderator(&text));
    Some(Comment {
        id: CommentId::parse(&id).ok()?,
        parent: Parent { kind: ParentKind::from_name(&parent_kind)?, id: parse_id(&parent).ok()? },
        author: parse_id(&author).ok()?,
        // It may be missing, but not malformed.
        reply_to: reply_to.map_or(Some(None), |id| id.map(Some))?,
        depth: depth.parse().ok()?,
        created_at: Timestamp::parse(&created_at)?,
        version: version.parse().ok()?,
        edited_at: edited_at.map_or(Some(None), |time| time.map(Some))?,
        status: CommentStatus::from_name(&status)?,
        body: present(body).map(Into::into),
        reason: present(reason).map(Into::into),
        removed_by: removed_by.map_or(Some(None), |by| by.map(Some))?,
        reply_count: 0,
    })
}

#[cfg(test)]
mod tests {
    use kinfolk_api::FileFormat;
    use kinfolk_core::Id;

    use super::*;
    use crate::output::Encoder;

    fn comments() -> Vec<Comment> {
        let comment = |number: u128, body: Option<&str>, status| Comment {
            id: CommentId(number),
            parent: Parent::post(Id::Integer(70)),
            author: Id::Integer(1),
            reply_to: (number > 1).then_some(CommentId(1)),
            depth: (number > 1).into(),
            created_at: Timestamp::from_millis(5),
            version: 1 + u32::from(number > 1),
            edited_at: (number > 1).then_some(Timestamp::from_millis(7)),
            status,
            body: body.map(Into::into),
            reason: (status == CommentStatus::Removed).then(|| "spam, \"again\"".into()),
            removed_by: match status {
                CommentStatus::Removed => Some(Moderator::User(Id::Integer(8))),
                CommentStatus::Purged => Some(Moderator::Service("feed-service".into())),
                CommentStatus::Active | CommentStatus::Deleted => None,
            },
            reply_count: 0,
        };
        vec![
            comment(1, Some("plain"), CommentStatus::Active),
            comment(2, Some("a \"b\"\nand, \"\"é\""), CommentStatus::Active),
            comment(3, Some("\""), CommentStatus::Removed),
            comment(4, None, CommentStatus::Purged),
        ]
    }

    fn lines(comments: &[Comment]) -> Vec<u8> {
        let table = Comments { ids: IdKind::Integer };
        let mut encoder = Encoder::new(Vec::new(), FileFormat::Csv, table).unwrap();
        comments.iter().for_each(|comment| encoder.write(comment).unwrap());
        encoder.finish().unwrap()
    }

    fn read(lines: &[u8]) -> Result<Vec<Comment>> {
        let mut reader = CommentReader::new(lines)?;
        let mut comments = Vec::new();
        while let Some(comment) = reader.next()? {
            comments.push(comment);
        }
        Ok(comments)
    }

    #[test]
    fn written_comments_are_read_back() {
        insta::assert_snapshot!(String::from_utf8(lines(&comments())).unwrap(), @r#"
        id,parent_kind,parent,author,reply_to,depth,created_at,version,edited_at,status,body,reason,removed_by
        00000000-0000-0000-0000-000000000001,post,70,1,,0,1970-01-01T00:00:00.005Z,1,,active,plain,,
        00000000-0000-0000-0000-000000000002,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,active,"a ""b""
        and, """"é""",,
        00000000-0000-0000-0000-000000000003,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,removed,"""","spam, ""again""",user:8
        00000000-0000-0000-0000-000000000004,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,purged,,,key:feed-service
        "#);
        assert_eq!(read(&lines(&comments())).unwrap(), comments());
        assert_eq!(read(&lines(&[])).unwrap(), []);
    }

    #[test]
    fn unusual_bodies_survive() {
        let odd = [
            "a\nb\n",
            "\u{7f}",
            "x\u{85}y\u{9b}31m",
            "\u{feff}x",
            "a\u{2028}b\u{2029}",
            " , ",
            "\u{1680}x\u{202e}",
        ];
        let mut all = comments();
        all.truncate(1);
        let comment = |(number, text): (u128, &&str)| {
            let (body, reason) = (Some((*text).into()), Some((*text).into()));
            Comment { id: CommentId(number), body, reason, status: CommentStatus::Removed, ..all[0].clone() }
        };
        let odd: Vec<Comment> = (1..).zip(&odd).map(comment).collect();
        assert_eq!(read(&lines(&odd)).unwrap(), odd);
    }

    #[test]
    fn truncated_exports_are_refused() {
        let whole = lines(&comments());
        let line_ends: Vec<usize> = (0..whole.len()).filter(|&at| read(&whole[..at]).is_ok()).collect();
        // Only where a line ends, which the transfer itself guards.
        assert_eq!(line_ends.len(), comments().len(), "{line_ends:?}");
        assert!(read(b"id,body\n").is_err());
        assert!(read(&[&whole[..], b"1,2,3\n"].concat()).is_err());
        assert!(read(&[&whole[..], b"\xff\n"].concat()).is_err());
    }
}
