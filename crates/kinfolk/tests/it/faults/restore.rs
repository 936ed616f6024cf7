//! `kill -9` of restores: whenever one is killed, the folder is no store, and the same restore run again makes the store of the
//! backup, whole.
//!
//! Many more: `KINFOLK_CRASH_CYCLES=300 cargo test --release -p kinfolk --test it faults::restore -- --nocapture`

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::random::Random;
use super::{number, require_none, seed, tracer};
use crate::support::{Sandbox, entries};

/// The calls by which a restore changes its folder.
const CALLS: &str = "?open,openat,write,pwrite64,ftruncate,fsync,fdatasync,?rename,?renameat,renameat2,?unlink,unlinkat,\
    ?mkdir,mkdirat,?rmdir";

/// A backup of edges, posts and comments, and what a store that is restored from it has.
struct Scene {
    sandbox: Sandbox,
    edges: String,
    comments: String,
}

impl Scene {
    fn new(edges: usize) -> Self {
        let sandbox = Sandbox::new();
        sandbox.ok(&format!("generate edges.csv --edges {edges} --users 3000 --quiet"));
        sandbox.ok("import edges.csv --quiet");
        for line in
            ["post 2 --id 20 --payload {\"a\":1}", "post 3 --id 30", "comment 1 20 one", "comment 2 20 two"]
        {
            sandbox.ok(line);
        }
        sandbox.ok("backup graph.backup --quiet");
        let edges = sandbox.export("kinfolk-data");
        let comments = sandbox.ok("export - --comments");
        Self { sandbox, edges, comments }
    }

    /// A restore, not started yet.
    fn restore(&self, folder: &str) -> Command {
        let mut command = self.sandbox.command(["restore", "graph.backup", "--quiet", "--data", folder]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// What a killed restore has left is refused, and restoring again brings everything.
    fn require_restorable(&self, folder: &str) -> Result<(), String> {
        let run = |line: &str| self.sandbox.run(&format!("{line} --data {folder}"));
        let refused = run("check 1 2");
        let names =
            if self.sandbox.path(folder).exists() { entries(&self.sandbox.path(folder)) } else { Vec::new() };
        let is_marked = names.iter().any(|name| name == "unfinished-restore");
        if is_marked && !refused.stderr.contains("run 'kinfolk restore' again") {
            return Err(format!("opened or refused for another reason: {refused:?}"));
        }
        let is_restored = !is_marked && names.iter().any(|name| name == "FORMAT");
        if !is_restored {
            let again = run("restore graph.backup --quiet");
            if again.status != 0 {
                return Err(format!("{names:?} can't be restored into: {again:?}"));
            }
        }
        if run("export -").stdout != self.edges || run("export - --comments").stdout != self.comments {
            return Err("what was restored differs from what was backed up".to_owned());
        }
        let verified = run("verify");
        if verified.status != 0 {
            return Err(format!("{verified:?}"));
        }
        Ok(())
    }
}

#[test]
fn a_restore_killed_at_a_random_moment_can_be_run_again() {
    let mut random = Random::new(seed("kill while restoring"));
    let scene = Scene::new(60_000);
    let began = Instant::now();
    assert!(scene.restore("whole").status().unwrap().success());
    let whole = began.elapsed();
    let (kills, mut violations, mut half_way) = (number("KINFOLK_CRASH_CYCLES", 10), Vec::new(), 0);
    for kill in 0..kills {
        let folder = format!("killed-{kill}");
        // Once in a while, the run after the first kill is killed too.
        for _ in 0..1 + usize::from(random.once_in(3)) {
            let mut child = scene.restore(&folder).spawn().unwrap();
            // The delay is the fault, not a wait for something.
            thread::sleep(Duration::from_micros(random.below(whole.as_micros() as usize) as u64));
            child.kill().unwrap();
            half_way += usize::from(!child.wait().unwrap().success());
        }
        if let Err(problem) = scene.require_restorable(&folder) {
            violations.push(format!("kill {kill}: {problem}"));
        }
        let _ = std::fs::remove_dir_all(scene.sandbox.path(&folder));
    }
    println!(
        "kill while restoring: {kills} folders, {half_way} kills half-way, {} violations",
        violations.len()
    );
    require_none("kill while restoring", &violations);
}

#[test]
fn a_restore_killed_before_any_of_its_calls_can_be_run_again() {
    let test = "kill a restore at a call";
    if !tracer::available(test) {
        return;
    }
    let mut random = Random::new(seed(test));
    let scene = Scene::new(300);
    let (sites, mut violations, mut reached) = (number("KINFOLK_FAULT_SITES", 20), Vec::new(), 0);
    for site in 0..sites {
        let folder = format!("killed-{site}");
        // Its calls are some hundred; counted in each thread, so that the first ones are reached by more threads.
        let when = if sites > 300 { site + 1 } else { 1 + random.below(300) };
        reached += usize::from(tracer::kill_before(CALLS, when, &scene.restore(&folder)));
        if let Err(problem) = scene.require_restorable(&folder) {
            violations.push(format!("call {when}: {problem}"));
        }
        let _ = std::fs::remove_dir_all(scene.sandbox.path(&folder));
    }
    println!("{test}: {sites} folders, {reached} killed, {} violations", violations.len());
    require_none(test, &violations);
}
