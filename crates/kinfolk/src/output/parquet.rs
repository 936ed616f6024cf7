//! Edges as Parquet: required columns, integers or strings for ids, a UTC timestamp in milliseconds for `since`.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use anyhow::Result;
use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, IdKind, Timestamp};

use super::{Columns, ZSTD_LEVEL};

/// How many rows are collected for one row group: 24 MB of integers.
const GROUP_ROWS: usize = 1 << 20;

/// Writes row groups into a file.
pub struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    followers: Ids,
    followees: Ids,
    since: Option<Vec<i64>>,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins with the schema.
    pub fn new(out: W, columns: Columns) -> Result<Self> {
        let id = match columns.ids {
            IdKind::Integer => "INT64",
            IdKind::Uuid => "BYTE_ARRAY",
        };
        let utf8 = if columns.ids == IdKind::Uuid { " (STRING)" } else { "" };
        let since = if columns.since { "REQUIRED INT64 since (TIMESTAMP(MILLIS,true));" } else { "" };
        let schema = parse_message_type(&format!(
            "message edges {{ REQUIRED {id} follower{utf8}; REQUIRED {id} followee{utf8}; {since} }}"
        ))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_created_by(format!("kinfolk {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            followers: Ids::new(columns.ids),
            followees: Ids::new(columns.ids),
            since: columns.since.then(Vec::new),
        })
    }

    /// Adds a row.
    pub fn write(&mut self, edge: Edge, since: Timestamp) -> Result<()> {
        self.followers.push(edge.follower);
        self.followees.push(edge.followee);
        if let Some(column) = &mut self.since {
            // A timestamp ends with the year 9999 and so fits.
            column.push(since.millis() as i64);
        }
        if self.followers.len() == GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes what is left and the footer.
    pub fn finish(mut self) -> Result<W> {
        if self.followers.len() > 0 {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        self.followers.write_column(&mut group)?;
        self.followees.write_column(&mut group)?;
        if let Some(since) = &mut self.since {
            write_integers(since, &mut group)?;
        }
        group.close()?;
        Ok(())
    }
}

/// A column of ids.
enum Ids {
    Integers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

impl Ids {
    fn new(kind: IdKind) -> Self {
        match kind {
            IdKind::Integer => Self::Integers(Vec::new()),
            IdKind::Uuid => Self::Texts(Vec::new()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    fn push(&mut self, id: Id) {
        match (self, id) {
            // An id has 63 bits and so fits.
            (Self::Integers(integers), Id::Integer(value)) => integers.push(value as i64),
            (Self::Texts(texts), id) => texts.push(ByteArray::from(id.to_string().into_bytes())),
            (Self::Integers(_), Id::Uuid(_)) => unreachable!("a store's ids are all of its kind"),
        }
    }

    /// Writes the column and empties it.
    fn write_column<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Integers(integers) => write_integers(integers, group),
            Self::Texts(texts) => {
                let mut column = group.next_column()?.ok_or_else(missing_column)?;
                column.typed::<ByteArrayType>().write_batch(texts, None, None)?;
                texts.clear();
                column.close()
            }
        }
    }
}

fn write_integers<W: Write + Send>(
    integers: &mut Vec<i64>,
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(missing_column)?;
    column.typed::<Int64Type>().write_batch(integers, None, None)?;
    integers.clear();
    column.close()
}

fn missing_column() -> ParquetError {
    ParquetError::General("the schema has fewer columns than are written".to_owned())
}
