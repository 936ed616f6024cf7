//! Every way to write the same edges gives the same graph.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::support::{Sandbox, expected_export, gzip, zstd};

const MILLIS: [i64; 3] = [1_767_225_600_000, 1_767_225_600_001, 0];
const TIMES: [&str; 3] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", "1970-01-01T00:00:00.000Z"];
const EDGES: [(u64, u64, &str); 3] =
    [(7, 9_223_372_036_854_775_807, TIMES[0]), (7, 8, TIMES[1]), (0, 7, TIMES[2])];

/// The lines of the test graph, with a separator and times as text.
fn lines(separator: &str, times: &[String]) -> String {
    let line = |((follower, followee, _), since): (&(u64, u64, &str), &String)| {
        format!("{follower}{separator}{followee}{separator}{since}\n")
    };
    EDGES.iter().zip(times).map(line).collect()
}

fn check(sandbox: &Sandbox, file: &str) {
    let data = format!("data-{file}");
    let report = sandbox.json(&format!("import {file} --data {data}"));
    assert_eq!(report["added"], 3, "{file}: {report}");
    assert_eq!(sandbox.export(&data), expected_export(&EDGES), "{file}");
}

#[test]
fn text_in_all_its_forms() {
    let sandbox = Sandbox::new();
    let millis = MILLIS.map(|millis| millis.to_string());
    let times = TIMES.map(str::to_owned);
    let offset =
        ["2026-01-01T01:00:00.000+01:00", "2025-12-31T23:30:00.001999-00:30", "1970-01-01T00:00:00z"];
    let offset = offset.map(str::to_owned);
    let forms = [
        ("comma", lines(",", &times)),
        ("tab", lines("\t", &times)),
        ("space", lines(" ", &times)),
        ("millis", lines(",", &millis)),
        ("offset", lines(",", &offset)),
        ("header", format!("follower,followee,since\n{}", lines(",", &millis))),
        ("other-header", format!("From\tTo\tSince\n{}", lines("\t", &millis))),
        ("comments", format!("# one\n\n#two\n{}# three\n   \n", lines(",", &times))),
        ("crlf", lines(",", &times).replace('\n', "\r\n")),
        ("no-end", lines(",", &times).trim_end().to_owned()),
        ("bom", format!("\u{feff}{}", lines(",", &times))),
        ("zeros", format!("\n00{}", lines(",", &millis).replace("\n7,", "\n0007,").replace(",8,", ",08,"))),
    ];
    for (name, text) in &forms {
        sandbox.write(name, text);
        check(&sandbox, name);
        let run = sandbox.run_with_input(&format!("import - --data stdin-{name}"), text);
        assert_eq!(run.status, 0, "{name}: {run:?}");
        assert_eq!(sandbox.export(&format!("stdin-{name}")), expected_export(&EDGES), "{name}");
    }
}

#[test]
fn compressed_text() {
    let sandbox = Sandbox::new();
    let text = lines(",", &TIMES.map(str::to_owned));
    let (first, rest) = text.split_at(20);
    for (name, bytes) in [
        ("one.csv.gz", gzip(text.as_bytes())),
        ("two.GZ", [gzip(first.as_bytes()), gzip(rest.as_bytes())].concat()),
        ("one.tsv.zst", zstd(text.as_bytes())),
        ("two.ZST", [zstd(first.as_bytes()), zstd(rest.as_bytes())].concat()),
    ] {
        sandbox.write(name, bytes);
        check(&sandbox, name);
    }
}

#[test]
fn exports_are_imports() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 30000 --users 3000 --sparse");
    sandbox.ok("import edges.csv");
    let whole = sandbox.export("kinfolk-data");
    assert!(sandbox.path("edges.csv").exists() && whole.lines().count() == 30_001);
    let mut pairs: Vec<(u64, u64)> = whole.lines().skip(1).map(pair).collect();
    assert!(pairs.is_sorted(), "by follower, then followee");
    pairs.dedup();
    assert_eq!(pairs.len(), 30_000);
    for file in ["out.csv", "out.csv.gz", "out.csv.zst", "out.parquet"] {
        sandbox.ok(&format!("export {file}"));
        sandbox.ok(&format!("import {file} --data from-{file}"));
        assert_eq!(sandbox.export(&format!("from-{file}")), whole, "{file}");
    }
}

fn pair(line: &str) -> (u64, u64) {
    let mut columns = line.split(',').map(|column| column.parse().unwrap_or_default());
    (columns.next().unwrap(), columns.next().unwrap())
}

/// A column of a Parquet file.
pub enum Column {
    Integers(Vec<i64>),
    Texts(Vec<&'static str>),
    /// A column that may have nothing in a row.
    Optional(Vec<Option<i64>>),
}

/// Writes a Parquet file of one row group.
pub fn write_parquet(path: &Path, schema: &str, columns: &[Column]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in columns {
        let mut out = group.next_column().unwrap().unwrap();
        match column {
            Column::Integers(values) => out.typed::<Int64Type>().write_batch(values, None, None).unwrap(),
            Column::Texts(values) => {
                let values: Vec<ByteArray> = values.iter().map(|&text| ByteArray::from(text)).collect();
                out.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap()
            }
            Column::Optional(values) => {
                let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                let values: Vec<i64> = values.iter().flatten().copied().collect();
                out.typed::<Int64Type>().write_batch(&values, Some(&levels), None).unwrap()
            }
        };
        out.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_in_all_its_forms() {
    let sandbox = Sandbox::new();
    let followers = || Column::Integers(vec![7, 7, 0]);
    let followees = || Column::Integers(vec![i64::MAX, 8, 7]);
    let scaled = |factor: i64| Column::Integers(MILLIS.map(|millis| millis * factor).to_vec());
    let ids = "REQUIRED INT64 follower; REQUIRED INT64 followee;";
    let forms: Vec<(&str, String, Vec<Column>)> = vec![
        ("plain", format!("{ids} REQUIRED INT64 since;"), vec![followers(), followees(), scaled(1)]),
        (
            "millis",
            format!("{ids} REQUIRED INT64 since (TIMESTAMP(MILLIS,true));"),
            vec![followers(), followees(), scaled(1)],
        ),
        (
            "micros",
            format!("{ids} REQUIRED INT64 since (TIMESTAMP(MICROS,true));"),
            vec![followers(), followees(), scaled(1_000)],
        ),
        (
            "nanos",
            format!("{ids} REQUIRED INT64 since (TIMESTAMP(NANOS,false));"),
            vec![followers(), followees(), scaled(1_000_000)],
        ),
        (
            "older-micros",
            format!("{ids} REQUIRED INT64 since (TIMESTAMP_MICROS);"),
            vec![followers(), followees(), scaled(1_000)],
        ),
        (
            "text",
            "REQUIRED BYTE_ARRAY follower (UTF8); REQUIRED BYTE_ARRAY followee (STRING); REQUIRED BYTE_ARRAY since (UTF8);"
                .to_owned(),
            vec![
                Column::Texts(vec!["7", "7", "0"]),
                Column::Texts(vec!["9223372036854775807", "8", "7"]),
                Column::Texts(TIMES.to_vec()),
            ],
        ),
        (
            "other-order",
            "OPTIONAL INT64 Since; REQUIRED INT64 TO; REQUIRED INT64 From;".to_owned(),
            vec![Column::Optional(MILLIS.map(Some).to_vec()), followees(), followers()],
        ),
    ];
    for (name, columns, values) in forms {
        let file = format!("{name}.parquet");
        write_parquet(&sandbox.path(&file), &format!("message edges {{ {columns} }}"), &values);
        check(&sandbox, &file);
    }

    let schema = format!("message edges {{ {ids} OPTIONAL INT64 since; }}");
    let since = Column::Optional(vec![None, Some(5), None]);
    write_parquet(&sandbox.path("some.parquet"), &schema, &[followers(), followees(), since]);
    sandbox.ok("import some.parquet");
    assert_eq!(sandbox.json("check 7 8")["since"], "1970-01-01T00:00:00.005Z");
    assert_eq!(sandbox.json("check 0 7")["since"], sandbox.json(&format!("check 7 {}", i64::MAX))["since"]);
}
