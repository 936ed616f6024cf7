//! A disk without any space left: a store on it can be opened, read, verified, exported and backed up, after whatever end, and
//! takes writes again when there is room.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::program::binary;
use super::small_disk::SmallDisk;
use crate::serve::running::{PATIENCE, Running};

const DISK_BYTES: usize = 24 << 20;
const EDGES: u64 = 3_000;

type Settings = &'static [(&'static str, &'static str)];

/// A store that has written nothing but its log, and one that has written rows all the time. The log has no space in reserve.
const WAYS: [Settings; 2] = [
    &[("KINFOLK_TEST_SEGMENT_BYTES", "8192")],
    &[("KINFOLK_TEST_SEGMENT_BYTES", "8192"), ("KINFOLK_TEST_FLUSH_ROWS", "600")],
];

struct Scene {
    disk: SmallDisk,
    settings: Settings,
}

impl Scene {
    fn kinfolk(&self, arguments: &[&str]) -> Command {
        let mut command = self.disk.command(binary());
        command.args(arguments).envs(self.settings.iter().copied());
        command.env("KINFOLK_DATA", self.disk.path().join("store"));
        command
    }

    /// Runs a command on the folder that must succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.kinfolk(arguments).output().expect("the program can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?} on a full disk: {errors}");
        String::from_utf8(output.stdout).expect("answers are text")
    }

    /// Makes a store in a process that is killed when everything is acknowledged.
    fn make(&self) {
        let mut apply = self.kinfolk(&["apply"]);
        apply.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut apply = apply.spawn().expect("the program can be started");
        let mut stdin = apply.stdin.take().expect("stdin is piped");
        let lines: String = (0..EDGES).map(|n| format!("follow {} {}\n", n % 50 + 1, 1_000 + n)).collect();
        let feeder = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).map(|()| stdin));
        let answers = BufReader::new(apply.stdout.take().expect("stdout is piped")).lines();
        let answers = answers.map_while(Result::ok).take(EDGES as usize);
        assert_eq!(answers.filter(|line| line.starts_with("ok changed")).count() as u64, EDGES);
        apply.kill().expect("the child can be ended");
        apply.wait().expect("the child can be waited for");
        feeder.join().expect("it does not panic").expect("the program has read everything");
    }

    fn serve(&self) -> Running {
        let command = self.kinfolk(&["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
        Running::from_command(command).unwrap_or_else(|run| panic!("a start on a full disk: {run:?}"))
    }

    /// Reads that need no space.
    fn read(&self) {
        assert!(self.ok(&["check", "1", "1000"]).starts_with("yes"));
        assert!(self.ok(&["counts", "1", "--json"]).contains("\"following\":60"));
        assert_eq!(self.ok(&["following", "1", "--limit", "1000", "--quiet"]).lines().count(), 60);
        assert_eq!(self.ok(&["changes", "--limit", "7", "--json"]).matches("\"position\"").count(), 7);
        assert_eq!(self.ok(&["export", "-"]).lines().count() as u64, EDGES + 1);
        let verified = self.ok(&["verify", "--json"]);
        assert!(verified.contains(&format!("\"edges\":{EDGES}")), "{verified}");
        assert!(verified.contains("\"difference_count\":0"), "{verified}");
    }
}

fn follow(server: &Running, followee: u64) -> (u16, String) {
    let answer = server.ask("POST", &format!("/v1/users/{followee}/follow"), Some("77"), &[], None);
    (answer.status, answer.body)
}

/// Follows users from `first` on. As long as there is space that was made ready, writes succeed; returns the first user that the
/// full disk refuses.
fn follow_until_refused(server: &Running, first: u64) -> u64 {
    let refused = (first..first + 4_000).map(|followee| (followee, follow(server, followee)));
    let (followee, (status, body)) =
        { refused }.find(|(_, (status, _))| *status != 204).expect("the disk is full");
    assert!(status == 507 && body.contains("storage_full"), "{status} {body}");
    followee
}

#[test]
fn a_store_on_a_full_disk_can_be_opened_and_read_and_goes_on_when_there_is_room() {
    for settings in WAYS {
        let Some(disk) = SmallDisk::new(DISK_BYTES) else {
            println!("full disk: NOT RUN, mounting a small file system in a namespace is not permitted here");
            return;
        };
        let scene = Scene { disk, settings };
        scene.make();
        scene.disk.fill();
        scene.read();
        let elsewhere = tempfile::tempdir().expect("a temporary folder");
        let backup = elsewhere.path().join("backup");
        let backup = backup.to_str().expect("temporary paths are text");
        assert!(scene.ok(&["backup", backup, "--json"]).contains(&format!("\"edges\":{EDGES}")));

        let server = scene.serve();
        assert_eq!(server.get("/readyz").status, 200);
        assert_eq!(server.get("/v1/users/1/counts").json()["following"], 60);
        follow_until_refused(&server, 1_001);
        assert_eq!(server.get("/readyz").status, 200, "reads are welcome");
        let (status, said) = server.end("TERM");
        assert_eq!(status, 0, "{said:?}");

        let server = scene.serve();
        // The end of the last process may have left a little space, such as that of a file that it could not finish.
        let refused = follow_until_refused(&server, 20_001);
        let followed = server.get("/v1/users/77/counts").json()["following"].as_u64().expect("a number");
        scene.disk.free();
        let deadline = Instant::now() + PATIENCE;
        while follow(&server, refused).0 != 204 {
            assert!(Instant::now() < deadline, "writes do not go on when there is room again");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(server.get("/v1/users/77/counts").json()["following"], followed + 1);
        let (status, said) = server.end("TERM");
        assert_eq!(status, 0, "{said:?}");
        assert!(scene.ok(&["verify", "--json"]).contains("\"difference_count\":0"));
    }
}
