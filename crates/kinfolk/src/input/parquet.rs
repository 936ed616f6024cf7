//! Edges from a Parquet file: columns `follower`, `followee` and optionally `since`, read in batches.
//!
//! Ids are 64-bit integers or strings; `since` is a timestamp, an integer of Unix milliseconds, or a string as in a
//! text file. A missing `since` means the time of the import; a missing id is malformed.

use std::cell::Cell;
use std::fs::File;

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, IdKind, Timestamp};

use super::line::{parse_since, require_not_ahead};
use super::{Location, Rules, Sink, Stop};

/// Rows per batch.
const BATCH_ROWS: usize = 8_192;

/// The edges of a file according to its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The number of edges.
    pub edges: u64,
    /// Whether they have a `since`.
    pub with_since: bool,
}

/// Reads the metadata; none if the file is no file of edges, which reading it reports.
pub fn expect(file: File) -> Option<Expected> {
    let reader = SerializedFileReader::new(file).ok()?;
    let layout = Layout::of(reader.metadata().file_metadata().schema_descr()).ok()?;
    Some(Expected { edges: row_count(&reader), with_since: layout.since.is_some() })
}

/// The number of rows of a file; none if it is not a Parquet file.
pub fn rows(file: File) -> Option<u64> {
    SerializedFileReader::new(file).ok().map(|reader| row_count(&reader))
}

fn row_count(reader: &SerializedFileReader<File>) -> u64 {
    let rows =
        reader.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
    rows.fold(0, u64::saturating_add)
}

/// Reads a whole file.
pub fn read(
    file: File,
    name: &str,
    rules: Rules,
    bytes_read: &Cell<u64>,
    sink: &mut impl Sink,
) -> Result<(), Stop> {
    let damaged = |row: u64, error: &ParquetError| {
        Stop::malformed(Location { file: name, line: row }, &format!("the Parquet file is damaged ({error})"))
    };
    let reader = SerializedFileReader::new(file)
        .map_err(|error| Stop::Malformed(format!("{name}: not a Parquet file ({error})")))?;
    let layout = Layout::of(reader.metadata().file_metadata().schema_descr())
        .map_err(|reason| Stop::Malformed(format!("{name}: {reason}")))?;
    let mut row = 1;
    for group in 0..reader.num_row_groups() {
        require_offsets(reader.metadata().row_group(group)).map_err(|error| damaged(row, &error))?;
        let group = reader.get_row_group(group).map_err(|error| damaged(row, &error))?;
        let first_row = row;
        let mut rows = Rows::new(&*group, &layout).map_err(|error| damaged(row, &error))?;
        loop {
            let count = rows.read_batch().map_err(|error| damaged(row, &error))?;
            if count == 0 {
                break;
            }
            for at in 0..count {
                match rows.edge(at, rules) {
                    Ok((edge, since)) => sink.edge(edge, since)?,
                    Err(reason) => sink.malformed(Location { file: name, line: row }, &reason)?,
                }
                row += 1;
            }
        }
        if i64::try_from(row - first_row) != Ok(group.metadata().num_rows()) {
            let error = ParquetError::General("it has fewer rows than its metadata says".to_owned());
            return Err(damaged(row, &error));
        }
        let size = u64::try_from(group.metadata().compressed_size()).unwrap_or_default();
        bytes_read.set(bytes_read.get() + size);
    }
    Ok(())
}

/// Returns an error for impossible offsets and sizes: the library panics at some of them.
fn require_offsets(group: &RowGroupMetaData) -> Result<(), ParquetError> {
    let is_possible = |column: &ColumnChunkMetaData| {
        column.compressed_size() >= 0
            && column.data_page_offset() >= 0
            && column.dictionary_page_offset().is_none_or(|offset| offset >= 0)
    };
    if group.columns().iter().all(is_possible) {
        Ok(())
    } else {
        Err(ParquetError::General("a column has an impossible offset".to_owned()))
    }
}

/// The columns of an edge.
struct Layout {
    follower: usize,
    followee: usize,
    since: Option<(usize, SinceUnit)>,
}

/// The unit of a `since` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SinceUnit {
    Millis,
    Micros,
    Nanos,
}

impl Layout {
    fn of(schema: &SchemaDescriptor) -> Result<Self, String> {
        let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let find = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        let ends = find("follower").zip(find("followee")).or_else(|| find("from").zip(find("to")));
        let wrong = || {
            format!(
                "expected the columns follower, followee and optionally since, found {}",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )
        };
        let (follower, followee) = ends.ok_or_else(wrong)?;
        let since = find("since");
        if names.len() != 2 + usize::from(since.is_some()) {
            return Err(wrong());
        }
        for column in [follower, followee] {
            require_id_column(&schema.column(column))?;
        }
        let since = since.map(|at| since_unit(&schema.column(at)).map(|unit| (at, unit))).transpose()?;
        Ok(Self { follower, followee, since })
    }
}

fn require_id_column(column: &ColumnDescriptor) -> Result<(), String> {
    let is_plain_integer = match column.logical_type_ref() {
        None => matches!(
            column.converted_type(),
            ConvertedType::NONE | ConvertedType::INT_64 | ConvertedType::UINT_64
        ),
        Some(logical) => matches!(logical, LogicalType::Integer(_)),
    };
    match column.physical_type() {
        PhysicalType::INT64 if is_plain_integer => require_flat(column),
        PhysicalType::BYTE_ARRAY => require_flat(column),
        other => Err(format!("column {} is {other}; expected 64-bit integers or strings", column.name())),
    }
}

fn since_unit(column: &ColumnDescriptor) -> Result<SinceUnit, String> {
    require_flat(column)?;
    let wrong = || {
        Err(format!(
            "column {} is {}; expected a timestamp, an integer of Unix milliseconds or a string",
            column.name(),
            column.physical_type()
        ))
    };
    match (column.physical_type(), column.logical_type_ref(), column.converted_type()) {
        (PhysicalType::BYTE_ARRAY, _, _) => Ok(SinceUnit::Millis),
        (PhysicalType::INT64, Some(LogicalType::Timestamp(timestamp)), _) => Ok(match timestamp.unit {
            TimeUnit::MILLIS => SinceUnit::Millis,
            TimeUnit::MICROS => SinceUnit::Micros,
            TimeUnit::NANOS => SinceUnit::Nanos,
        }),
        (PhysicalType::INT64, _, ConvertedType::TIMESTAMP_MICROS) => Ok(SinceUnit::Micros),
        (
            PhysicalType::INT64,
            None | Some(LogicalType::Integer(_)),
            ConvertedType::NONE
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::INT_64
            | ConvertedType::UINT_64,
        ) => Ok(SinceUnit::Millis),
        _ => wrong(),
    }
}

fn require_flat(column: &ColumnDescriptor) -> Result<(), String> {
    if column.max_rep_level() == 0 && column.max_def_level() <= 1 {
        Ok(())
    } else {
        Err(format!("column {} is nested; expected one value per row", column.name()))
    }
}

/// The rows of one row group.
struct Rows {
    follower: Column,
    followee: Column,
    since: Option<(Column, SinceUnit)>,
}

impl Rows {
    fn new(group: &dyn RowGroupReader, layout: &Layout) -> Result<Self, ParquetError> {
        let column = |at: usize| {
            let is_nullable = group.metadata().column(at).column_descr().max_def_level() > 0;
            Column::new(group.get_column_reader(at)?, is_nullable)
        };
        let since = layout.since.map(|(at, unit)| column(at).map(|column| (column, unit))).transpose()?;
        Ok(Self { follower: column(layout.follower)?, followee: column(layout.followee)?, since })
    }

    /// Reads the next rows; returns their number.
    fn read_batch(&mut self) -> Result<usize, ParquetError> {
        let count = self.follower.read_batch()?;
        let same = self.followee.read_batch()? == count
            && self.since.as_mut().map_or(Ok(count), |(column, _)| column.read_batch())? == count;
        if same { Ok(count) } else { Err(ParquetError::General("columns differ in length".to_owned())) }
    }

    fn edge(&mut self, at: usize, rules: Rules) -> Result<(Edge, Option<Timestamp>), String> {
        // Read all columns before validating one, because each has its own offset.
        let (follower, followee) = (self.follower.value(at), self.followee.value(at));
        let since = self.since.as_mut().map(|(column, unit)| (column.value(at), *unit));
        let edge =
            Edge { follower: id("follower", follower, rules)?, followee: id("followee", followee, rules)? };
        let since = match since {
            None | Some((Value::Missing, _)) => None,
            Some((value, unit)) => Some(time(value, unit, rules)?),
        };
        Ok((edge, since))
    }
}

/// A value of a row.
#[derive(Clone, Copy)]
enum Value<'a> {
    Missing,
    Integer(i64),
    Text(&'a [u8]),
}

fn id(name: &str, value: Value<'_>, rules: Rules) -> Result<Id, String> {
    match value {
        Value::Missing => Err(format!("{name} is missing")),
        Value::Integer(integer) => {
            let integer = u64::try_from(integer).map_err(|_| format!("{name} {integer} is negative"))?;
            let id = Id::Integer(integer);
            rules.ids.unwrap_or(IdKind::Integer).require(id).map_err(|error| format!("{name} {error}"))?;
            Ok(id)
        }
        Value::Text(text) => rules.parse_id(text).map_err(|error| format!("{name} {error}")),
    }
}

fn time(value: Value<'_>, unit: SinceUnit, rules: Rules) -> Result<Timestamp, String> {
    match value {
        Value::Missing => Err("since is missing".to_owned()),
        Value::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|_| "since is not UTF-8".to_owned())?;
            parse_since(text, rules)
        }
        Value::Integer(count) => {
            let millis = match unit {
                SinceUnit::Millis => count,
                SinceUnit::Micros => count.div_euclid(1_000),
                SinceUnit::Nanos => count.div_euclid(1_000_000),
            };
            let millis = u64::try_from(millis).map_err(|_| format!("since {count} is before 1970"))?;
            require_not_ahead(Timestamp::from_millis(millis), rules)
        }
    }
}

/// A column and its current batch.
enum Column {
    Integer(Batch<Int64Type>),
    Text(Batch<ByteArrayType>),
}

impl Column {
    fn new(reader: ColumnReader, is_nullable: bool) -> Result<Self, ParquetError> {
        match reader {
            ColumnReader::Int64ColumnReader(reader) => Ok(Self::Integer(Batch::new(reader, is_nullable))),
            ColumnReader::ByteArrayColumnReader(reader) => Ok(Self::Text(Batch::new(reader, is_nullable))),
            _ => Err(ParquetError::General("a column does not have the type in the schema".to_owned())),
        }
    }

    fn read_batch(&mut self) -> Result<usize, ParquetError> {
        match self {
            Self::Integer(batch) => batch.read(),
            Self::Text(batch) => batch.read(),
        }
    }

    /// The value in a row of the batch; rows must be read in order.
    fn value(&mut self, row: usize) -> Value<'_> {
        match self {
            Self::Integer(batch) => batch.next(row).map_or(Value::Missing, |&value| Value::Integer(value)),
            Self::Text(batch) => {
                batch.next(row).map_or(Value::Missing, |value: &ByteArray| Value::Text(value.data()))
            }
        }
    }
}

/// The values of some rows: only the present ones, with a level per row.
struct Batch<T: DataType> {
    reader: ColumnReaderImpl<T>,
    is_nullable: bool,
    levels: Vec<i16>,
    values: Vec<T::T>,
    next_value: usize,
}

impl<T: DataType> Batch<T> {
    fn new(reader: ColumnReaderImpl<T>, is_nullable: bool) -> Self {
        Self { reader, is_nullable, levels: Vec::new(), values: Vec::new(), next_value: 0 }
    }

    fn read(&mut self) -> Result<usize, ParquetError> {
        self.levels.clear();
        self.values.clear();
        self.next_value = 0;
        let levels = self.is_nullable.then_some(&mut self.levels);
        let (rows, ..) = self.reader.read_records(BATCH_ROWS, levels, None, &mut self.values)?;
        Ok(rows)
    }

    fn next(&mut self, row: usize) -> Option<&T::T> {
        if self.is_nullable && self.levels.get(row) != Some(&1) {
            return None;
        }
        let at = self.next_value;
        self.next_value += 1;
        self.values.get(at)
    }
}
