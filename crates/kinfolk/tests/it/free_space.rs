//! Parquet imports that would not fit on the disk: they are refused with sizes before anything is done.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};

use crate::formats::{Column, write_parquet};
use crate::serve::running::{PATIENCE, Running};
use crate::support::{Sandbox, entries};

/// A file of two edges that says that it has more than any disk can take.
fn endless(sandbox: &Sandbox) {
    let path = sandbox.path("edges.parquet");
    write_parquet(
        &path,
        "message edges { required int64 follower; required int64 followee; }",
        &[Column::Integers(vec![1, 3]), Column::Integers(vec![2, 4])],
    );
    let bytes = fs::read(&path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
    let footer_bytes = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize + 8;
    let mut builder = metadata.into_builder();
    let groups = builder.take_row_groups().into_iter();
    let groups = groups.map(|group| group.into_builder().set_num_rows(1 << 50).build().unwrap());
    let metadata = builder.set_row_groups(groups.collect()).build();
    let mut changed = bytes[..bytes.len() - footer_bytes].to_vec();
    ParquetMetaDataWriter::new(&mut changed, &metadata).finish().unwrap();
    sandbox.write("endless.parquet", changed);
}

/// 1 Pi edges of 55 bytes.
const NEEDED: &str = "the import needs about 57671680.0 GiB of disk space, and ";

#[test]
fn a_file_whose_edges_do_not_fit_is_refused_before_it_is_read() {
    let sandbox = Sandbox::new();
    endless(&sandbox);
    let here = sandbox.fails("import endless.parquet", 1);
    assert!(here.starts_with(NEEDED) && here.contains(" are free; free some space and try again"), "{here}");
    assert_eq!(entries(&sandbox.path("")), ["edges.parquet", "endless.parquet"], "no store was made for it");
    // All files of an import count together.
    assert!(sandbox.fails("import edges.parquet endless.parquet", 1).starts_with(NEEDED));

    sandbox.ok("import edges.parquet");
    let server = Running::start(&sandbox, "");
    let before = entries(&sandbox.path("kinfolk-data"));
    let there = sandbox.run(&format!("import endless.parquet {}", server.url())).failure(1);
    assert!(there.starts_with(NEEDED), "{there}");
    assert_eq!(entries(&sandbox.path("kinfolk-data")), before);
    assert_eq!(server.redis("SISMEMBER following:1 2"), ":1");
    assert_eq!(server.end("TERM").0, 0);
    assert!(entries(&sandbox.path("kinfolk-data/imports")).is_empty(), "nothing is left of it");
}

#[test]
fn a_file_that_does_not_fit_is_refused_before_it_is_sent() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    let mut stream = TcpStream::connect(server.http.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /v1/admin/import?format=parquet HTTP/1.1\r\nhost: localhost\r\ncontent-length:";
    write!(stream, "{head} {}\r\n\r\nPAR1", 1_u64 << 60).unwrap();
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let refused = lines.find(|line| line.contains("\"error\"")).unwrap();
    let refused: serde_json::Value = serde_json::from_str(&refused).unwrap();
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["status"]), (&"storage_full".into(), &507.into()), "{refused}");
    let detail = error["detail"].as_str().unwrap();
    assert!(detail.starts_with("the import needs about 2147483648.0 GiB of disk space, and "), "{detail}");
    drop(stream);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}
