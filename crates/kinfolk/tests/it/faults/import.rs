//! `kill -9` of imports, and of the start that applies what a killed import has logged: whenever they are killed, the import has
//! happened or has not, and the store opens.
//!
//! Many more: `KINFOLK_FAULT_SITES=600 cargo test --release -p kinfolk --test it faults::import -- --nocapture`

use super::random::Random;
use super::{number, require_none, seed, tracer};
use crate::support::{Sandbox, copy_folder};

/// The calls that take steps of an import, and those that remove its files afterwards.
const STEPS: &str = "fsync,fdatasync,?rename,?renameat,renameat2";
const REMOVALS: &str = "?unlink,unlinkat,?rmdir";

/// What a killed import and a killed start have left must be a store before the import or after it.
fn require_whole(sandbox: &Sandbox, whole: &[String; 2]) -> Result<usize, String> {
    let exported = sandbox.run("export - --data killed");
    if exported.status != 0 {
        return Err(format!("it does not open: {exported:?}"));
    }
    let verified = sandbox.run("verify --data killed");
    if verified.status != 0 {
        return Err(format!("{verified:?}"));
    }
    let found = whole.iter().position(|whole| *whole == exported.stdout);
    found.ok_or_else(|| "neither what was there before the import nor what is there after it".to_owned())
}

#[test]
fn an_import_and_the_start_after_it_killed_before_any_of_their_calls_leave_a_store() {
    let test = "kill an import at a call";
    if !tracer::available(test) {
        return;
    }
    let mut random = Random::new(seed(test));
    let sandbox = Sandbox::new();
    sandbox.ok("generate undated.csv --edges 400 --users 200 --quiet");
    sandbox.ok("import undated.csv --quiet --data source");
    sandbox.ok("export edges.csv --quiet --data source");
    sandbox.ok("follow 900001 900002 --data before");
    let copy = |to: &str| {
        let _ = std::fs::remove_dir_all(sandbox.path(to));
        copy_folder(&sandbox.path("before"), &sandbox.path(to));
    };
    copy("after");
    sandbox.ok("import edges.csv --quiet --data after");
    let whole = ["before", "after"].map(|data| sandbox.export(data));
    let (sites, mut violations, mut killed, mut imported) =
        (number("KINFOLK_FAULT_SITES", 20), Vec::new(), 0, 0);
    for site in 0..sites {
        // It syncs and renames some thirty times in the thread that does most of it.
        let step = 1 + if sites > 100 { site / 5 } else { random.below(60) };
        let removal = 1 + random.below(5);
        copy("killed");
        let import = sandbox.command(["import", "edges.csv", "--quiet", "--data", "killed"]);
        killed += usize::from(tracer::kill_before(STEPS, step, &import));
        let start = sandbox.command(["counts", "1", "--data", "killed"]);
        killed += usize::from(tracer::kill_before(REMOVALS, removal, &start));
        match require_whole(&sandbox, &whole) {
            Ok(found) => imported += found,
            Err(problem) => violations.push(format!("step {step}, removal {removal}: {problem}")),
        }
    }
    println!("{test}: {sites} stores, {killed} kills, {imported} imported, {} violations", violations.len());
    require_none(test, &violations);
}
