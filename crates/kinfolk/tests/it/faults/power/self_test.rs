//! Tests of the simulator itself: what it keeps and what it may lose, on records written by hand; and that a real record in which
//! a sync is left out is found wanting, whatever data the sync is for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::super::random::Random;
use super::super::tracer;
use super::crash::{Style, materialise};
use super::disk::Disk;
use super::replay::Replay;
use super::trace::Trace;
use super::{Losses, recording};

/// Text as `strace -xx` prints it.
fn hex(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{digits}\"")
}

/// Replays lines in which `'text'` stands for a string.
fn replay(lines: &[&str]) -> Result<Replay, String> {
    let mut text = String::new();
    for line in lines {
        let parts = line.split('\'').enumerate();
        let line: String =
            parts.map(|(at, part)| if at % 2 == 0 { part.to_owned() } else { hex(part) }).collect();
        text.push_str(&line);
        text.push('\n');
    }
    let trace = Trace::parse(&text)?;
    let mut replay = Replay::new(Disk::empty(), Path::new("/r"));
    for &event in &trace.events {
        replay.step(&trace, event)?;
    }
    Ok(replay)
}

/// Every content that a file has in many drawn states; none where the file is missing.
fn contents(replay: &Replay, style: Style, file: &str) -> BTreeSet<Option<String>> {
    let mut random = Random::new(5);
    (0..400)
        .map(|_| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            materialise(&replay.disk, style, &mut random, folder.path());
            let bytes = fs::read(folder.path().join(file)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect()
}

fn only(text: Option<&str>) -> BTreeSet<Option<String>> {
    BTreeSet::from([text.map(str::to_owned)])
}

#[test]
fn synced_data_under_a_synced_name_is_never_lost() {
    let replay = replay(&[
        "1 openat(AT_FDCWD, '/r/log', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3",
        "1 write(3, 'abc', 3) = 3",
        "1 fdatasync(3) = 0",
        "1 openat(AT_FDCWD, '/r', O_RDONLY|O_CLOEXEC) = 4",
        "1 fsync(4) = 0",
    ])
    .unwrap();
    for style in [Style::AllLost, Style::AllKept, Style::Mixed] {
        assert_eq!(contents(&replay, style, "log"), only(Some("abc")));
    }
}

#[test]
fn a_name_without_a_sync_of_its_folder_may_be_lost() {
    let replay = replay(&[
        "1 openat(AT_FDCWD, '/r/log', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3",
        "1 write(3, 'abc', 3) = 3",
        "1 fsync(3) = 0",
    ])
    .unwrap();
    assert_eq!(contents(&replay, Style::AllLost, "log"), only(None));
    assert_eq!(contents(&replay, Style::Mixed, "log"), &only(None) | &only(Some("abc")));
}

#[test]
fn un_synced_writes_are_torn_dropped_reordered_and_replaced_by_zeros() {
    let replay = replay(&[
        "1 openat(AT_FDCWD, '/r/log', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3",
        "1 openat(AT_FDCWD, '/r', O_RDONLY|O_CLOEXEC) = 4",
        "1 fsync(4) = 0",
        "1 write(3, 'ab', 2) = 2",
        "1 write(3, 'cd', 2) = 2",
    ])
    .unwrap();
    let seen = contents(&replay, Style::Mixed, "log");
    for expected in ["", "a", "ab", "abc", "abcd", "\0\0cd", "\0\0\0\0", "ab\0\0"] {
        assert!(seen.contains(&Some(expected.to_owned())), "{expected:?} is missing from {seen:?}");
    }
    assert_eq!(contents(&replay, Style::AllKept, "log"), only(Some("abcd")));
}

#[test]
fn a_replaced_file_is_old_or_new_and_new_may_be_empty_if_it_was_not_synced() {
    let mut lines = vec![
        "1 openat(AT_FDCWD, '/r/now', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3",
        "1 write(3, 'old', 3) = 3",
        "1 fsync(3) = 0",
        "1 openat(AT_FDCWD, '/r', O_RDONLY|O_CLOEXEC) = 4",
        "1 fsync(4) = 0",
        "1 openat(AT_FDCWD, '/r/new', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 5",
        "1 write(5, 'new', 3) = 3",
        "1 fsync(5) = 0",
        "1 rename('/r/new', '/r/now') = 0",
    ];
    let old_or_new = &only(Some("old")) | &only(Some("new"));
    assert_eq!(contents(&replay(&lines).unwrap(), Style::Mixed, "now"), old_or_new);
    lines.remove(7);
    assert!(contents(&replay(&lines).unwrap(), Style::Mixed, "now").contains(&Some(String::new())));
}

#[test]
fn a_sync_does_not_cover_a_write_that_ended_after_it_began() {
    let replay = replay(&[
        "1 openat(AT_FDCWD, '/r/log', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3",
        "1 openat(AT_FDCWD, '/r', O_RDONLY|O_CLOEXEC) = 4",
        "1 fsync(4) = 0",
        "1 write(3, 'ab', 2) = 2",
        "2 fsync(3 <unfinished ...>",
        "1 write(3, 'cd', 2) = 2",
        "2 <... fsync resumed>) = 0",
        // The number is free from when its closing begins.
        "2 close(3 <unfinished ...>",
        "1 openat(AT_FDCWD, '/r', O_RDONLY|O_CLOEXEC) = 3",
        "2 <... close resumed>) = 0",
        "1 fsync(3) = 0",
    ])
    .unwrap();
    assert_eq!(contents(&replay, Style::AllLost, "log"), only(Some("ab")));
}

#[test]
fn a_failed_sync_loses_data_that_a_later_one_does_not_bring_back() {
    let replay = replay(&[
        "1 openat(AT_FDCWD, '/r/log', O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3",
        "1 openat(AT_FDCWD, '/r', O_RDONLY|O_CLOEXEC) = 4",
        "1 fsync(4) = 0",
        "1 pwrite64(3, 'ab', 2, 0) = 2",
        "1 fdatasync(3) = -1 EIO (Input/output error) (INJECTED)",
        "1 pwrite64(3, 'cd', 2, 2) = 2",
        "1 fdatasync(3) = 0",
    ])
    .unwrap();
    assert_eq!(contents(&replay, Style::AllLost, "log"), only(Some("\0\0cd")));
}

#[test]
fn what_the_model_does_not_know_is_refused() {
    let open = "1 openat(AT_FDCWD, '/r/log', O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 3";
    for unknown in [
        "1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f0000000000",
        "1 copy_file_range(5, NULL, 3, NULL, 100, 0) = 100",
        "1 sync() = 0",
        "1 link('/r/log', '/r/other') = 0",
    ] {
        assert!(replay(&[open, unknown]).is_err(), "{unknown} must be refused");
    }
    assert!(replay(&[open, "1 mmap(NULL, 9, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000"]).is_ok());
}

/// Each of these is a forgetful program.
#[test]
fn a_sync_that_is_left_out_is_found() {
    const STATES_MAX: usize = 150;
    if !tracer::available("power, planted") {
        return;
    }
    for left_out in [
        "data/log",
        "data/rows",
        "data/posts",
        "data/comments",
        "data/comments/tables",
        "data/FORMAT.tmp",
        "data/erasing.tmp",
    ] {
        let mut random = Random::new(11);
        let mut losses = Losses::new(recording(), &mut random, STATES_MAX);
        losses.replay.leave_out_syncs(left_out);
        losses.run(|_| true);
        let found = losses.violations.first();
        let found = found.unwrap_or_else(|| panic!("nobody misses syncs of {left_out}"));
        println!(
            "power, planted: without syncs of {left_out}: {}",
            found.chars().take(300).collect::<String>()
        );
    }
}
