//! Backups and restores beside other files: nothing that is there is touched, whole files appear or none, and a restore that was
//! stopped is run again. Kills are in `faults::restore`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Instant;

use crate::serve::running::{PATIENCE, Running};
use crate::support::{Sandbox, entries};

/// What may be where a backup is to be, or where an older version had its temporary file.
fn obstacles(sandbox: &Sandbox) {
    sandbox.write("precious", "precious");
    sandbox.write("taken.backup", "precious");
    sandbox.write("one.partial", "precious");
    symlink("precious", sandbox.path("two.partial")).unwrap();
    symlink("nowhere", sandbox.path("dangling.backup")).unwrap();
    symlink("precious", sandbox.path("linked.backup")).unwrap();
    fs::create_dir(sandbox.path("folder.backup")).unwrap();
}

fn require_untouched(sandbox: &Sandbox) {
    for name in ["precious", "taken.backup", "one.partial", "two.partial", "linked.backup"] {
        assert_eq!(fs::read_to_string(sandbox.path(name)).unwrap(), "precious", "{name}");
    }
    for (name, target) in
        [("two.partial", "precious"), ("dangling.backup", "nowhere"), ("linked.backup", "precious")]
    {
        assert_eq!(fs::read_link(sandbox.path(name)).unwrap().to_str(), Some(target), "{name}");
    }
    assert!(!sandbox.path("nowhere").exists() && entries(&sandbox.path("folder.backup")).is_empty());
    let left: Vec<_> = entries(&sandbox.path("")).into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_backup_touches_nothing_that_is_there() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    obstacles(&sandbox);
    let try_all = |place: &str| {
        for name in ["taken", "dangling", "linked", "folder"] {
            let message = sandbox.fails(&format!("backup {name}.backup {place}"), 1);
            assert!(message.contains(&format!("{name}.backup exists already")), "{message}");
        }
        for name in ["one", "two"] {
            sandbox.ok(&format!("backup {name}.backup {place}"));
            fs::remove_file(sandbox.path(&format!("{name}.backup"))).unwrap();
        }
        assert!(sandbox.fails(&format!("backup missing/a.backup {place}"), 1).contains("missing/a.backup"));
        require_untouched(&sandbox);
    };
    try_all("--data kinfolk-data");
    let server = Running::start(&sandbox, "");
    try_all(&server.url());
    assert_eq!(server.end("TERM").0, 0);
}

/// Answers each connection with these bytes, then closes it.
fn answering(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(&answer).unwrap();
        }
    });
    format!("http://{address}")
}

#[test]
fn a_backup_that_does_not_arrive_whole_is_not_kept() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 5000 --users 500 --quiet");
    sandbox.ok("import edges.csv --quiet");
    sandbox.ok("backup whole.backup");
    let whole = fs::read(sandbox.path("whole.backup")).unwrap();
    let answer =
        |head: &str, bytes: &[u8]| [format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes(), bytes].concat();
    let chunk = |bytes: &[u8], end: &str| {
        [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n", end.as_bytes()].concat()
    };
    let half = &whole[..whole.len() / 2];
    let damaged = [half, &[0], &whole[half.len() + 1..]].concat();
    let (chunked, last) = ("transfer-encoding: chunked", "0\r\n\r\n");
    let answers = vec![
        // The connection ends early; or something on the way calls a part, or more, the whole.
        answer(chunked, &chunk(half, "")),
        answer(&format!("content-length: {}", whole.len()), half),
        answer(chunked, &chunk(half, last)),
        answer(chunked, &chunk(b"", "")),
        answer(chunked, &chunk(&damaged, last)),
        answer(chunked, &chunk(&[&whole[..], &whole].concat(), last)),
        answer("connection: close", half),
    ];
    let count = answers.len();
    let url = answering(answers);
    for number in 0..count {
        let message = sandbox.fails(&format!("backup out.backup --url {url}"), 1);
        assert!(message.contains("arrived incomplete"), "{number}: {message}");
        assert_eq!(entries(&sandbox.path("")), ["edges.csv", "kinfolk-data", "whole.backup"], "{number}");
    }
    let url = answering(vec![answer(chunked, &chunk(&whole, last))]);
    sandbox.ok(&format!("backup out.backup --url {url}"));
    sandbox.write("half.backup", half);
    assert!(sandbox.fails("restore half.backup --data restored", 1).contains("cut short"));
}

/// Asks a server for a backup and takes only the beginning, as soon as the server has a place for it.
fn begin_backup(server: &Running) -> TcpStream {
    let patience = Instant::now() + PATIENCE;
    loop {
        let mut stream = TcpStream::connect(server.http.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /v1/admin/backup HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut begin = vec![0; 12];
        stream.read_exact(&mut begin).unwrap();
        if begin == b"HTTP/1.1 200" {
            stream.read_exact(&mut vec![0; 100_000]).unwrap();
            return stream;
        }
        assert_eq!(String::from_utf8_lossy(&begin), "HTTP/1.1 503");
        assert!(Instant::now() < patience, "backups without a client go on");
    }
}

#[test]
fn an_online_backup_needs_no_room_of_its_own_and_is_released_with_its_client() {
    let sandbox = Sandbox::new();
    // More than the sockets, the channel and everything else on the way can hold.
    sandbox.ok("generate edges.csv --edges 1500000 --users 60000 --sparse --quiet");
    sandbox.ok("import edges.csv --quiet");
    sandbox.ok("post 2 --id 70");
    let comment = sandbox.json("comment 1 70 private")["id"].as_str().unwrap().to_owned();
    let server = Running::start(&sandbox, "");
    let before = entries(&sandbox.path("kinfolk-data"));
    let client = begin_backup(&server);
    assert_eq!(entries(&sandbox.path("kinfolk-data")), before, "nothing is spooled");

    assert_eq!(server.redis("SADD following:1 2"), ":1", "writes go on");
    drop(client);
    // What a backup reads can't be erased.
    assert_eq!(sandbox.run(&format!("purge-comment {comment} {}", server.url())).status, 0);
    let compact = || sandbox.run(&format!("compact {}", server.url()));
    let patience = Instant::now() + PATIENCE;
    while compact().status != 0 {
        assert!(Instant::now() < patience, "the snapshot is not released");
    }
    // Each one that was not released would keep one of four places.
    for _ in 0..6 {
        drop(begin_backup(&server));
    }
    while sandbox.run(&format!("backup whole.backup {}", server.url())).status != 0 {
        assert!(Instant::now() < patience, "backups without a client go on");
    }
    assert_eq!(server.end("TERM").0, 0);
    sandbox.ok("restore whole.backup --data restored --quiet");
    assert_eq!(sandbox.export("restored"), sandbox.export("kinfolk-data"));
}

#[test]
fn a_half_restored_folder_is_no_store_until_it_is_restored_again() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    sandbox.ok("backup graph.backup");
    sandbox.write("edges.csv", "1,2\n");
    let half = || {
        fs::create_dir_all(sandbox.path("half/rows/pairs")).unwrap();
        sandbox.write("half/unfinished-restore", "kinfolk restore\n");
        sandbox.write("half/rows/pairs/junk", "junk");
        sandbox.write("half/index.tmp", "junk");
    };
    half();
    // Also with the last file that a restore writes: the marker decides.
    for is_late in [false, true] {
        if is_late {
            fs::copy(sandbox.path("kinfolk-data/FORMAT"), sandbox.path("half/FORMAT")).unwrap();
        }
        for line in [
            "check 1 2",
            "follow 3 4",
            "import edges.csv",
            "apply",
            "serve --http 127.0.0.1:0 --resp 127.0.0.1:0",
        ] {
            let run = sandbox.run(&format!("{line} --data half"));
            assert_eq!(run.status, 1, "{line}: {run:?}");
            assert!(run.stderr.contains("run 'kinfolk restore' again"), "{line}: {run:?}");
        }
    }
    sandbox.write("half/photo.jpg", "meow");
    sandbox.fails("restore graph.backup --data half", 1);
    assert_eq!(fs::read_to_string(sandbox.path("half/photo.jpg")).unwrap(), "meow");
    fs::remove_file(sandbox.path("half/photo.jpg")).unwrap();
    half();
    sandbox.ok("restore graph.backup --data half");
    assert_eq!(sandbox.export("half"), sandbox.export("kinfolk-data"));

    // A file of that name that is none of ours, in a folder with names like ours.
    fs::create_dir_all(sandbox.path("other/rows")).unwrap();
    sandbox.write("other/unfinished-restore", "of my paintings");
    sandbox.write("other/rows/boat", "row");
    sandbox.fails("restore graph.backup --data other", 1);
    assert_eq!(fs::read_to_string(sandbox.path("other/rows/boat")).unwrap(), "row");
    assert_eq!(fs::read_to_string(sandbox.path("other/unfinished-restore")).unwrap(), "of my paintings");
}
