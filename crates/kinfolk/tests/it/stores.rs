//! Folders: missing, foreign, of another format or kind, in use.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use crate::support::{Sandbox, entries};

const READS: [&str; 10] = [
    "check 1 2",
    "following 1",
    "followers 1",
    "friends 1",
    "counts 1",
    "changes",
    "verify",
    "export -",
    "backup file",
    "unfollow 1 2",
];

#[test]
fn reading_makes_no_store() {
    let sandbox = Sandbox::new();
    for line in READS {
        let message = sandbox.fails(line, 1);
        assert!(message.contains("there is no store in ./kinfolk-data"), "{line}: {message}");
        assert!(message.contains("--data"), "says what to do: {message}");
    }
    assert_eq!(entries(&sandbox.path("")), [""; 0]);
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("photos")).unwrap();
    sandbox.write("photos/cat.jpg", "meow");
    sandbox.write("edges.csv", "1,2\n");
    for line in ["check 1 2", "follow 1 2", "import edges.csv", "apply", "verify", "restore edges.csv"] {
        let message = sandbox.fails(&format!("{line} --data photos"), 1);
        assert!(message.contains("photos") || message.contains("edges.csv"), "{line}: {message}");
    }
    let names = entries(&sandbox.path("photos"));
    assert!(names.iter().all(|name| name == "cat.jpg" || name == "LOCK"), "{names:?}");
    assert_eq!(fs::read_to_string(sandbox.path("photos/cat.jpg")).unwrap(), "meow");

    sandbox.write("file", "");
    sandbox.fails("follow 1 2 --data file", 1);
    sandbox.fails("check 1 2 --data file", 1);
}

#[test]
fn a_format_that_is_not_known_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    let path = sandbox.path("kinfolk-data/FORMAT");
    let good = fs::read_to_string(&path).unwrap();
    for bad in [good.replace("format 1", "format 99"), good.replace("integer", "uuid"), String::new()] {
        fs::write(&path, &bad).unwrap();
        for line in ["check 1 2", "follow 3 4", "verify"] {
            let message = sandbox.fails(line, 1);
            assert!(message.contains("kinfolk-data"), "{line}: {message}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), bad, "left as it is");
    }
    fs::write(&path, good).unwrap();
    sandbox.ok("check 1 2");
}

#[test]
fn one_process_at_a_time() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", "5,6\n");
    let mut holder = sandbox.spawn("apply");
    let mut input = holder.stdin.take().unwrap();
    let mut answers = BufReader::new(holder.stdout.take().unwrap()).lines();
    input.write_all(b"follow 1 2\n").unwrap();
    assert!(answers.next().unwrap().unwrap().starts_with("ok changed "));

    for line in READS.into_iter().chain(["follow 1 3", "import edges.csv", "apply", "restore edges.csv"]) {
        let message = sandbox.fails(line, 1);
        if !line.starts_with("restore") {
            assert!(message.contains("open in another Kinfolk process"), "{line}: {message}");
        }
    }
    drop(input);
    assert!(holder.wait().unwrap().success());
    assert_eq!(sandbox.json("counts 1")["following"], 1);
}

#[test]
fn uuid_stores() {
    let sandbox = Sandbox::new();
    let (a, b) = ("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "00000000-0000-0000-0000-0000000000ff");
    let message = sandbox.fails(&format!("follow {a} {b}"), 2);
    assert!(message.contains("--ids"), "{message}");
    assert_eq!(entries(&sandbox.path("")), [""; 0], "no store of the wrong kind was made");

    sandbox.ok(&format!("follow {a} {} --ids uuid", b.to_uppercase()));
    sandbox.ok(&format!("check {a} {b}"));
    assert_eq!(sandbox.json(&format!("following {a}"))["items"][0]["id"], b);
    assert_eq!(sandbox.json(&format!("counts {b}"))["followers"], 1);
    let run = sandbox.run_with_input("apply", format!("follow {b} {a}\nfollow 1 2\n"));
    let answers: Vec<&str> = run.stdout.lines().collect();
    assert!(answers[0].starts_with("ok changed "), "{run:?}");
    assert!(answers[1].starts_with("error invalid_id "), "{run:?}");
    for line in ["follow 1 2", "check 1 2", "counts 1"] {
        assert!(sandbox.fails(line, 2).contains("uuid ids"), "{line}");
    }
    let message = sandbox.fails(&format!("check {a} {b} --ids integer"), 1);
    assert!(message.contains("uses uuid ids"), "{message}");

    let before = sandbox.export("kinfolk-data");
    sandbox.write("integers.csv", "1,2\n");
    assert!(sandbox.fails("import integers.csv", 1).contains("integers.csv:1: follower"));
    assert_eq!(sandbox.export("kinfolk-data"), before);
    for file in ["out.csv", "out.csv.zst", "out.parquet"] {
        sandbox.ok(&format!("export {file}"));
        sandbox.ok(&format!("import {file} --data from-{file} --ids uuid"));
        assert_eq!(sandbox.export(&format!("from-{file}")), before, "{file}");
    }
    sandbox.ok("backup file.backup");
    sandbox.ok("restore file.backup --data restored");
    assert_eq!(sandbox.export("restored"), before);
}

#[test]
fn a_first_import_that_fails_leaves_no_store() {
    let sandbox = Sandbox::new();
    sandbox.write("uuids.csv", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,00000000-0000-0000-0000-0000000000ff\n");
    sandbox.fails("import uuids.csv", 1);
    assert_eq!(entries(&sandbox.path("")), ["uuids.csv"]);
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.fails("import uuids.csv --data empty", 1);
    assert_eq!(entries(&sandbox.path("empty")), [""; 0]);
    sandbox.ok("import uuids.csv --data empty --ids uuid");
}
