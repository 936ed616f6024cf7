//! Rows as Parquet: integers or strings for ids, UTC timestamps in milliseconds. The table defines the columns.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use anyhow::Result;
use kinfolk_core::{Id, IdKind};

use super::ZSTD_LEVEL;

/// Converts the rows of a table to row groups.
pub(crate) trait Group {
    /// A row.
    type Row;

    /// The schema, as a message type.
    fn schema(&self) -> String;

    /// Adds a row to the columns.
    fn push(&mut self, row: &Self::Row);

    /// Whether there are no rows.
    fn is_empty(&self) -> bool;

    /// Whether the row group has reached its size.
    fn is_full(&self) -> bool;

    /// Writes all columns in the order of the schema and clears them.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError>;
}

/// Writes row groups into a file.
pub(crate) struct ParquetWriter<W: Write + Send, G> {
    writer: SerializedFileWriter<W>,
    group: G,
}

impl<W: Write + Send, G: Group> ParquetWriter<W, G> {
    /// Starts with the schema.
    pub(crate) fn new(out: W, group: G) -> Result<Self> {
        let schema = parse_message_type(&group.schema())?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_created_by(format!("kinfolk {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, group })
    }

    /// Adds a row.
    pub(crate) fn write(&mut self, row: &G::Row) -> Result<()> {
        self.group.push(row);
        if self.group.is_full() {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes buffered rows and the footer.
    pub(crate) fn finish(mut self) -> Result<W> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        self.group.write(&mut group)?;
        group.close()?;
        Ok(())
    }
}

/// A required column of ids.
pub(crate) enum Ids {
    /// Integer ids.
    Integers(Required<Int64Type>),
    /// UUIDs, as text.
    Texts(Required<ByteArrayType>),
}

impl Ids {
    /// A column for ids of a kind.
    pub(crate) fn new(kind: IdKind) -> Self {
        match kind {
            IdKind::Integer => Self::Integers(Required::new()),
            IdKind::Uuid => Self::Texts(Required::new()),
        }
    }

    /// The column in the schema.
    pub(crate) fn column(kind: IdKind, name: &str) -> String {
        match kind {
            IdKind::Integer => format!("REQUIRED INT64 {name};"),
            IdKind::Uuid => format!("REQUIRED BYTE_ARRAY {name} (STRING);"),
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(column) => column.0.len(),
            Self::Texts(column) => column.0.len(),
        }
    }

    /// Adds an id.
    pub(crate) fn push(&mut self, id: Id) {
        match (self, id) {
            // Ids have 63 bits, so they fit.
            (Self::Integers(column), Id::Integer(value)) => column.0.push(value as i64),
            (Self::Texts(column), id) => column.0.push(bytes(&id.to_string())),
            (Self::Integers(_), Id::Uuid(_)) => unreachable!("all ids of a store have one kind"),
        }
    }

    /// Writes the column and clears it.
    pub(crate) fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Integers(column) => column.write(group),
            Self::Texts(column) => column.write(group),
        }
    }
}

/// A column with a value in every row.
pub(crate) struct Required<T: DataType>(pub(crate) Vec<T::T>);

impl<T: DataType> Required<T> {
    /// An empty column.
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Writes the column and clears it.
    pub(crate) fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        write_column::<T, W>(&mut self.0, None, group)
    }
}

/// A column with optional values.
pub(crate) struct Optional<T: DataType> {
    values: Vec<T::T>,
    /// For each row 1 if it has a value, else 0.
    levels: Vec<i16>,
}

impl<T: DataType> Optional<T> {
    /// An empty column.
    pub(crate) fn new() -> Self {
        Self { values: Vec::new(), levels: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, value: Option<T::T>) {
        self.levels.push(value.is_some().into());
        self.values.extend(value);
    }

    /// Writes the column and clears it.
    pub(crate) fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        write_column::<T, W>(&mut self.values, Some(&self.levels), group)?;
        self.levels.clear();
        Ok(())
    }
}

/// Text in a column.
pub(crate) fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn write_column<T: DataType, W: Write + Send>(
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has too few columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    column.close()
}
