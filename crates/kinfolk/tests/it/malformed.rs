//! Malformed input: stopped with file, line and reason, and nothing of it in the graph.

use std::fs;

use crate::formats::{Column, write_parquet};
use crate::support::{Sandbox, gzip, zstd};

/// A graph with an edge in it, and what it holds.
fn prepared() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    let export = sandbox.export("kinfolk-data");
    (sandbox, export)
}

#[test]
fn each_kind_of_malformed_line() {
    let (sandbox, before) = prepared();
    let long = format!("5,{}", "6".repeat(5_000));
    let cases: [(&[u8], &str); 20] = [
        (b"5", "separated by commas"),
        (b"5\t6", "separated by commas"),
        (b"5 6", "separated by commas"),
        (b"5,", "followee \"\" is not a valid id: an id cannot be empty"),
        (b",6", "follower \"\" is not a valid id: an id cannot be empty"),
        (b"5,6,7,8", "4 columns"),
        (b"x,6", "follower \"x\" is not a valid id: expected a decimal integer"),
        (b"5,-6", "followee \"-6\" is not a valid id"),
        (b"5, 6", "followee \" 6\" is not a valid id"),
        (b"5,6.0", "followee \"6.0\" is not a valid id"),
        (b"5,9223372036854775808", "at most 2^63 - 1"),
        (b"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,6", "uses integer ids"),
        (b"follower,followee", "follower \"follower\" is not a valid id"),
        (b"5,6,", "since \"\" is neither"),
        (b"5,6,tomorrow", "since \"tomorrow\" is neither an RFC 3339 time nor Unix milliseconds"),
        (b"5,6,9999-12-31T23:59:59Z", "more than 5 minutes in the future"),
        (b"5,6,253402300799999", "more than 5 minutes in the future"),
        (b"5,\xff\xfe", "not UTF-8"),
        (b"5,6\0", "NUL"),
        (long.as_bytes(), "longer than 4096 bytes"),
    ];
    for (line, reason) in cases {
        let text = [b"follower,followee\n3,4\n".as_slice(), line, b"\n5,7\n"].concat();
        sandbox.write("bad.csv", &text);
        let message = sandbox.fails("import bad.csv", 1);
        assert!(message.starts_with("bad.csv:3: "), "{message}");
        assert!(message.contains(reason), "{message} instead of {reason}");
        assert_eq!(sandbox.export("kinfolk-data"), before, "{reason}");

        // In a file of several, from a pipe, and as the last line without an end.
        sandbox.write("good.csv", "8,9\n");
        assert!(sandbox.fails("import good.csv bad.csv", 1).starts_with("bad.csv:3: "));
        let message = sandbox.run_with_input("import -", &text).failure(1);
        assert!(message.starts_with("standard input:3: "), "{message}");
        sandbox.write("end.csv", [b"3,4\n".as_slice(), line].concat());
        assert!(sandbox.fails("import end.csv", 1).starts_with("end.csv:2: "));
        assert_eq!(sandbox.export("kinfolk-data"), before, "{reason}");

        let report = sandbox.json("import bad.csv --skip-invalid --data skipped");
        assert_eq!(report["invalid"], 1, "{reason}: {report}");
        fs::remove_dir_all(sandbox.path("skipped")).unwrap();
    }
    assert_eq!(sandbox.json("changes")["items"].as_array().unwrap().len(), 1, "no import in the log");
}

#[test]
fn a_line_is_malformed_far_into_a_file() {
    let (sandbox, before) = prepared();
    sandbox.ok("generate good.csv --edges 300000 --users 20000");
    let mut text = fs::read_to_string(sandbox.path("good.csv")).unwrap();
    text.push_str("5;6\n7,8\n");
    sandbox.write("bad.csv", text);
    let message = sandbox.fails("import bad.csv --memory 1", 1);
    assert!(message.starts_with("bad.csv:300002: "), "{message}");
    assert_eq!(sandbox.export("kinfolk-data"), before);
    let report = sandbox.json("import bad.csv --memory 1 --skip-invalid");
    assert_eq!((&report["invalid"], report["added"].as_u64() > Some(299_999)), (&1.into(), true));
}

#[test]
fn compressed_files_that_are_cut_short_or_damaged() {
    let (sandbox, before) = prepared();
    let text: String = (10..20_000).map(|id| format!("{id},{}\n", id * 7_919)).collect();
    for (name, whole) in [("x.csv.gz", gzip(text.as_bytes())), ("x.csv.zst", zstd(text.as_bytes()))] {
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x55;
        let mut cases = vec![flipped, b"1,2\n".to_vec(), [whole.clone(), b"trailing".to_vec()].concat()];
        cases.extend([1, 5, whole.len() / 3, whole.len() - 1].map(|length| whole[..length].to_vec()));
        for (number, bytes) in cases.iter().enumerate() {
            sandbox.write(name, bytes);
            for options in ["", "--skip-invalid"] {
                let message = sandbox.fails(&format!("import {name} {options}"), 1);
                let place_is_named = message.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
                assert!(place_is_named, "{number} {options}: {message}");
                assert_eq!(sandbox.export("kinfolk-data"), before, "{name} {number} {options}");
            }
        }
        sandbox.write(name, &whole);
        sandbox.ok(&format!("import {name} --data whole-{name}"));
    }
}

#[test]
fn parquet_files_of_another_shape() {
    let (sandbox, before) = prepared();
    let cases: [(&str, &[Column], &str); 9] = [
        (
            "REQUIRED INT64 a; REQUIRED INT64 b;",
            &[Column::Integers(vec![1]), Column::Integers(vec![2])],
            "x.parquet: expected the columns follower, followee and optionally since, found a, b",
        ),
        ("REQUIRED INT64 follower;", &[Column::Integers(vec![1])], "found follower"),
        (
            "REQUIRED INT64 follower; REQUIRED INT64 followee; REQUIRED INT64 weight;",
            &[Column::Integers(vec![1]), Column::Integers(vec![2]), Column::Integers(vec![3])],
            "found follower, followee, weight",
        ),
        (
            "REQUIRED INT64 follower; REQUIRED INT64 followee (TIMESTAMP(MILLIS,true));",
            &[Column::Integers(vec![1]), Column::Integers(vec![2])],
            "column followee is INT64; expected 64-bit integers or strings",
        ),
        (
            "REQUIRED INT64 follower; OPTIONAL INT64 followee;",
            &[Column::Integers(vec![5, 6]), Column::Optional(vec![Some(1), None])],
            "x.parquet:2: followee is missing",
        ),
        (
            "REQUIRED INT64 follower; REQUIRED INT64 followee;",
            &[Column::Integers(vec![5, 6, 7]), Column::Integers(vec![1, 2, -3])],
            "x.parquet:3: followee -3 is negative",
        ),
        (
            "REQUIRED BYTE_ARRAY follower (UTF8); REQUIRED INT64 followee;",
            &[Column::Texts(vec!["1", "x"]), Column::Integers(vec![2, 3])],
            "x.parquet:2: follower \"x\" is not a valid id",
        ),
        (
            "REQUIRED INT64 follower; REQUIRED INT64 followee; REQUIRED INT64 since;",
            &[
                Column::Integers(vec![5]),
                Column::Integers(vec![6]),
                Column::Integers(vec![253_402_300_799_999]),
            ],
            "x.parquet:1: since 9999-12-31T23:59:59.999Z is more than 5 minutes in the future",
        ),
        (
            "REQUIRED INT64 follower; REQUIRED INT64 followee; REQUIRED INT64 since (TIMESTAMP(MICROS,true));",
            &[Column::Integers(vec![5]), Column::Integers(vec![6]), Column::Integers(vec![-1])],
            "x.parquet:1: since -1 is before 1970",
        ),
    ];
    for (columns, values, expected) in cases {
        write_parquet(&sandbox.path("x.parquet"), &format!("message edges {{ {columns} }}"), values);
        let message = sandbox.fails("import x.parquet", 1);
        assert!(message.contains(expected), "{message} instead of {expected}");
        assert_eq!(sandbox.export("kinfolk-data"), before, "{expected}");
    }
}

#[test]
fn parquet_files_that_are_damaged() {
    let (sandbox, before) = prepared();
    sandbox.ok("generate good.parquet --edges 5000 --users 500");
    let good = fs::read(sandbox.path("good.parquet")).unwrap();
    for length in [0, 3, 8, good.len() / 2, good.len() - 1] {
        sandbox.write("bad.parquet", &good[..length]);
        let message = sandbox.fails("import bad.parquet", 1);
        assert!(message.starts_with("bad.parquet: not a Parquet file"), "{message}");
    }
    sandbox.write("bad.parquet", "1,2\n3,4\n5,6\n");
    assert!(sandbox.fails("import bad.parquet", 1).contains("not a Parquet file"));
    assert_eq!(sandbox.export("kinfolk-data"), before);
}
