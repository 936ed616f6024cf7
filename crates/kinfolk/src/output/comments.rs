//! The table of comments. Bodies are never empty.

use kinfolk_core::IdKind;
use kinfolk_core::comments::Comment;

use super::table::{Column, ColumnKind, Table, Value};

/// The columns of a file of comments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comments {
    /// The kind of ids of parents and authors.
    pub(crate) ids: IdKind,
}

impl Table for Comments {
    type Row = Comment;
    const NAME: &'static str = "comments";
    const GROUP_ROWS: usize = 1 << 17;

    fn columns(self) -> Vec<Column> {
        use ColumnKind::{Int32, Int64, Text, Time};
        vec![
            Column::required("id", Text),
            Column::required("parent_kind", Text),
            Column::ids("parent", self.ids),
            Column::ids("author", self.ids),
            Column::optional("reply_to", Text),
            Column::required("depth", Int32),
            Column::required("created_at", Time),
            Column::required("version", Int64),
            Column::optional("edited_at", Time),
            Column::required("status", Text),
            Column::optional("body", Text),
            Column::optional("reason", Text),
            Column::optional("removed_by", Text),
        ]
    }

    fn visit(self, comment: &Comment, mut each: impl FnMut(Value<'_>)) {
        each(Value::Text(comment.id.to_string().into()));
        each(Value::Text(comment.parent.kind.name().into()));
        each(Value::Id(comment.parent.id));
        each(Value::Id(comment.author));
        each(Value::text(comment.reply_to.map(|id| id.to_string())));
        each(Value::Number(comment.depth.into()));
        each(Value::Time(comment.created_at));
        each(Value::Number(comment.version));
        each(comment.edited_at.map_or(Value::Missing, Value::Time));
        each(Value::Text(comment.status.name().into()));
        each(Value::text(comment.body.as_deref()));
        each(Value::text(comment.reason.as_deref()));
        each(Value::text(comment.removed_by.as_ref().map(ToString::to_string)));
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::comments::{CommentId, CommentStatus, Moderator, Parent};
    use kinfolk_core::{Id, Timestamp};

    use super::super::csv::CsvWriter;
    use super::*;

    fn comment(number: u128, body: Option<&str>, status: CommentStatus) -> Comment {
        Comment {
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
        }
    }

    #[test]
    fn lines() {
        let mut writer = CsvWriter::new(Vec::new(), Comments { ids: IdKind::Integer });
        for comment in [
            comment(1, Some("plain"), CommentStatus::Active),
            comment(2, Some("a \"b\"\nand, \"\"é\""), CommentStatus::Active),
            comment(3, Some("\""), CommentStatus::Removed),
            comment(4, None, CommentStatus::Purged),
            comment(5, Some("x\u{85}y\u{9b}31m\u{2028} \u{feff}\u{202e}"), CommentStatus::Deleted),
        ] {
            writer.write(&comment).unwrap();
        }
        let text = String::from_utf8(writer.finish().unwrap()).unwrap().escape_debug().to_string();
        insta::assert_snapshot!(text.replace("\\n", "\n").replace("\\\"", "\""), @r#"
        id,parent_kind,parent,author,reply_to,depth,created_at,version,edited_at,status,body,reason,removed_by
        00000000-0000-0000-0000-000000000001,post,70,1,,0,1970-01-01T00:00:00.005Z,1,,active,plain,,
        00000000-0000-0000-0000-000000000002,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,active,"a ""b""
        and, """"é""",,
        00000000-0000-0000-0000-000000000003,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,removed,"""","spam, ""again""",user:8
        00000000-0000-0000-0000-000000000004,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,purged,,,key:feed-service
        00000000-0000-0000-0000-000000000005,post,70,1,00000000-0000-0000-0000-000000000001,1,1970-01-01T00:00:00.005Z,2,1970-01-01T00:00:00.007Z,deleted,x\u{85}y\u{9b}31m\u{2028} \u{feff}\u{202e},,
        "#);
    }
}
