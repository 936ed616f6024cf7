//! The table of comments. A missing value is empty in CSV and null in Parquet; bodies are never empty.

use std::borrow::Cow;
use std::io::Write;

use ::parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedRowGroupWriter;
use kinfolk_core::comments::Comment;
use kinfolk_core::{IdKind, Timestamp};

use super::Table;
use super::csv::{Lines, push_text};
use super::parquet::{Group, Ids, Optional, Required, bytes};

/// Maximum rows of a row group…
const GROUP_ROWS: usize = 1 << 17;
/// …and maximum text.
const GROUP_BYTES: usize = 32 << 20;

/// The header of a file of comments.
pub(crate) const HEADER: &str =
    "id,parent_kind,parent,author,reply_to,depth,created_at,version,edited_at,status,body,reason,removed_by";

/// The columns of a file of comments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comments {
    /// The kind of ids of parents and authors.
    pub(crate) ids: IdKind,
}

impl Table for Comments {
    type Row = Comment;
    type Lines = CommentLines;
    type Group = CommentGroup;

    fn lines(self) -> CommentLines {
        CommentLines
    }

    fn group(self) -> CommentGroup {
        CommentGroup {
            table: self,
            text_bytes: 0,
            id: Required::new(),
            parent_kind: Required::new(),
            parent: Ids::new(self.ids),
            author: Ids::new(self.ids),
            reply_to: Optional::new(),
            depth: Required::new(),
            created_at: Required::new(),
            version: Required::new(),
            edited_at: Optional::new(),
            status: Required::new(),
            body: Optional::new(),
            reason: Optional::new(),
            removed_by: Optional::new(),
        }
    }
}

/// Comments as lines.
pub(crate) struct CommentLines;

impl Lines for CommentLines {
    type Row = Comment;

    fn header(&self) -> &'static str {
        HEADER
    }

    fn push(&mut self, comment: &Comment, buffer: &mut Vec<u8>) {
        let fields: [Cow<'_, str>; 13] = [
            comment.id.to_string().into(),
            comment.parent.kind.name().into(),
            comment.parent.id.to_string().into(),
            comment.author.to_string().into(),
            comment.reply_to.map(|id| id.to_string()).unwrap_or_default().into(),
            comment.depth.to_string().into(),
            comment.created_at.to_string().into(),
            comment.version.to_string().into(),
            comment.edited_at.map(|time| time.to_string()).unwrap_or_default().into(),
            comment.status.name().into(),
            comment.body.as_deref().unwrap_or_default().into(),
            comment.reason.as_deref().unwrap_or_default().into(),
            comment.removed_by.as_ref().map(ToString::to_string).unwrap_or_default().into(),
        ];
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                buffer.push(b',');
            }
            push_text(buffer, field);
        }
    }
}

/// Comments as columns.
pub(crate) struct CommentGroup {
    table: Comments,
    text_bytes: usize,
    id: Required<ByteArrayType>,
    parent_kind: Required<ByteArrayType>,
    parent: Ids,
    author: Ids,
    reply_to: Optional<ByteArrayType>,
    depth: Required<Int32Type>,
    created_at: Required<Int64Type>,
    version: Required<Int64Type>,
    edited_at: Optional<Int64Type>,
    status: Required<ByteArrayType>,
    body: Optional<ByteArrayType>,
    reason: Optional<ByteArrayType>,
    removed_by: Optional<ByteArrayType>,
}

impl Group for CommentGroup {
    type Row = Comment;

    fn schema(&self) -> String {
        let [parent, author] = ["parent", "author"].map(|name| Ids::column(self.table.ids, name));
        format!(
            "message comments {{
                REQUIRED BYTE_ARRAY id (STRING);
                REQUIRED BYTE_ARRAY parent_kind (STRING);
                {parent}
                {author}
                OPTIONAL BYTE_ARRAY reply_to (STRING);
                REQUIRED INT32 depth;
                REQUIRED INT64 created_at (TIMESTAMP(MILLIS,true));
                REQUIRED INT64 version;
                OPTIONAL INT64 edited_at (TIMESTAMP(MILLIS,true));
                REQUIRED BYTE_ARRAY status (STRING);
                OPTIONAL BYTE_ARRAY body (STRING);
                OPTIONAL BYTE_ARRAY reason (STRING);
                OPTIONAL BYTE_ARRAY removed_by (STRING);
            }}"
        )
    }

    fn push(&mut self, comment: &Comment) {
        // Timestamps end with the year 9999, so they fit.
        let millis = |time: Timestamp| time.millis() as i64;
        let texts = [&comment.body, &comment.reason];
        self.text_bytes += texts.into_iter().flatten().map(|text| text.len()).sum::<usize>();
        self.id.0.push(bytes(&comment.id.to_string()));
        self.parent_kind.0.push(bytes(comment.parent.kind.name()));
        self.parent.push(comment.parent.id);
        self.author.push(comment.author);
        self.reply_to.push(comment.reply_to.map(|id| bytes(&id.to_string())));
        self.depth.0.push(comment.depth.into());
        self.created_at.0.push(millis(comment.created_at));
        self.version.0.push(comment.version.into());
        self.edited_at.push(comment.edited_at.map(millis));
        self.status.0.push(bytes(comment.status.name()));
        self.body.push(comment.body.as_deref().map(bytes));
        self.reason.push(comment.reason.as_deref().map(bytes));
        self.removed_by.push(comment.removed_by.as_ref().map(|by| bytes(&by.to_string())));
    }

    fn is_empty(&self) -> bool {
        self.id.0.is_empty()
    }

    fn is_full(&self) -> bool {
        self.id.0.len() >= GROUP_ROWS || self.text_bytes >= GROUP_BYTES
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        self.text_bytes = 0;
        self.id.write(group)?;
        self.parent_kind.write(group)?;
        self.parent.write(group)?;
        self.author.write(group)?;
        self.reply_to.write(group)?;
        self.depth.write(group)?;
        self.created_at.write(group)?;
        self.version.write(group)?;
        self.edited_at.write(group)?;
        self.status.write(group)?;
        self.body.write(group)?;
        self.reason.write(group)?;
        self.removed_by.write(group)
    }
}
