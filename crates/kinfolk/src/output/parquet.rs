//! Rows as Parquet: integers or strings for ids, UTC timestamps in milliseconds. The table defines the columns.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use anyhow::Result;
use kinfolk_core::Id;

use super::ZSTD_LEVEL;
use super::table::{Column, ColumnKind, Table, Value};

/// Maximum text of a row group.
const GROUP_BYTES: usize = 32 << 20;

/// Writes row groups into a file.
pub(crate) struct ParquetWriter<W: Write + Send, T> {
    writer: SerializedFileWriter<W>,
    table: T,
    columns: Vec<ColumnValues>,
    rows: usize,
    text_bytes: usize,
}

impl<W: Write + Send, T: Table> ParquetWriter<W, T> {
    /// Starts with the schema.
    pub(crate) fn new(out: W, table: T) -> Result<Self> {
        let columns = table.columns();
        let fields: String = columns.iter().map(field).collect();
        let schema = parse_message_type(&format!("message {} {{ {fields}}}", T::NAME))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_created_by(format!("kinfolk {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let columns = columns.into_iter().map(ColumnValues::new).collect();
        Ok(Self { writer, table, columns, rows: 0, text_bytes: 0 })
    }

    /// Adds a row.
    pub(crate) fn write(&mut self, row: &T::Row) -> Result<()> {
        let mut columns = self.columns.iter_mut();
        let text_bytes = &mut self.text_bytes;
        self.table.visit(row, |value| {
            if let Value::Text(text) = &value {
                *text_bytes += text.len();
            }
            columns.next().expect("a row has a value for each column").push(value);
        });
        self.rows += 1;
        if self.rows >= T::GROUP_ROWS || self.text_bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes buffered rows and the footer.
    pub(crate) fn finish(mut self) -> Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        self.columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
        group.close()?;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }
}

/// A column in the schema.
fn field(column: &Column) -> String {
    let presence = if column.is_optional { "OPTIONAL" } else { "REQUIRED" };
    let (physical, logical) = match column.kind {
        ColumnKind::Int32 => ("INT32", ""),
        ColumnKind::Int64 => ("INT64", ""),
        ColumnKind::Time => ("INT64", " (TIMESTAMP(MILLIS,true))"),
        ColumnKind::Text => ("BYTE_ARRAY", " (STRING)"),
    };
    format!("{presence} {physical} {}{logical}; ", column.name)
}

/// The values of a column in the current row group.
struct ColumnValues {
    values: Values,
    /// For each row of an optional column 1 if it has a value, else 0.
    levels: Option<Vec<i16>>,
}

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Texts(Vec<ByteArray>),
}

impl ColumnValues {
    fn new(column: Column) -> Self {
        let values = match column.kind {
            ColumnKind::Int32 => Values::Int32(Vec::new()),
            ColumnKind::Int64 | ColumnKind::Time => Values::Int64(Vec::new()),
            ColumnKind::Text => Values::Texts(Vec::new()),
        };
        Self { values, levels: column.is_optional.then(Vec::new) }
    }

    fn push(&mut self, value: Value<'_>) {
        if let Some(levels) = &mut self.levels {
            levels.push((!matches!(value, Value::Missing)).into());
        }
        match (&mut self.values, value) {
            (_, Value::Missing) if self.levels.is_some() => {}
            (Values::Int32(values), Value::Number(number)) => values.push(number as i32),
            (Values::Int64(values), Value::Number(number)) => values.push(number.into()),
            // Ids have 63 bits, and timestamps end with the year 9999, so they fit.
            (Values::Int64(values), Value::Id(Id::Integer(id))) => values.push(id as i64),
            (Values::Int64(values), Value::Time(time)) => values.push(time.millis() as i64),
            (Values::Texts(values), Value::Id(id)) => values.push(bytes(&id.to_string())),
            (Values::Texts(values), Value::Text(text)) => values.push(bytes(&text)),
            (_, value) => unreachable!("{value:?} does not have the type of its column"),
        }
    }

    /// Writes the column and clears it.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Int32(values) => write_column::<Int32Type, W>(values, levels, group)?,
            Values::Int64(values) => write_column::<Int64Type, W>(values, levels, group)?,
            Values::Texts(values) => write_column::<ByteArrayType, W>(values, levels, group)?,
        }
        self.levels.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn bytes(text: &str) -> ByteArray {
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
