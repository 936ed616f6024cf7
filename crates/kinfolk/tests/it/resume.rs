//! An import that is killed and run again ends as if nothing had happened.

use std::fs;
use std::io::{BufRead, BufReader};

use crate::support::{Sandbox, zstd};

/// Kills an import after so many lines of progress, if it lasts that long.
fn import_and_kill(sandbox: &Sandbox, line: &str, after_lines: usize) {
    let mut child = sandbox.spawn(&format!("{line} --progress-every 0"));
    let progress = BufReader::new(child.stderr.take().unwrap()).lines();
    let seen = progress.take(after_lines).map_while(Result::ok).count();
    assert!(seen > 0, "the import tells its progress");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Edges with times, so that a later run gives the same, and some to be skipped.
fn edges() -> String {
    let graph = kinfolk::generate::PowerLaw::new(400_000, 30_000, 5);
    let mut text = String::from("follower,followee,since\n");
    for (number, edge) in graph.edges().unwrap().enumerate() {
        let since = 1_700_000_000_000 + number as u64 % 1_000;
        text.push_str(&format!("{},{},{since}\n", edge.follower, edge.followee));
        if number % 1_000 == 0 {
            text.push_str(&format!(
                "{0},{0},5\n{1},{2},{since}\nnonsense\n",
                number, edge.follower, edge.followee
            ));
        }
    }
    text
}

#[test]
fn killed_at_many_points() {
    let sandbox = Sandbox::new();
    let text = edges();
    sandbox.write("edges.csv", &text);
    sandbox.write("edges.csv.zst", zstd(text.as_bytes()));
    sandbox.ok("import edges.csv --skip-invalid --data whole");
    let whole = sandbox.export("whole");
    assert_eq!(whole.lines().count(), 400_001);

    // Without a kill the import says some forty lines: most while it reads, the last ones while it loads.
    for (number, after_lines) in [1, 5, 12, 20, 23, 24, 25, 26, 28, 30, 33].into_iter().enumerate() {
        let file = if number % 2 == 0 { "edges.csv" } else { "edges.csv.zst" };
        let data = format!("killed-{after_lines}");
        let line = format!("import {file} --skip-invalid --memory 1 --data {data}");
        import_and_kill(&sandbox, &line, after_lines);
        let report = sandbox.json(&line);
        assert_eq!(report["invalid"], 400, "{report}");
        assert_eq!(sandbox.export(&data), whole, "killed after {after_lines} lines");
        assert_eq!(sandbox.json(&format!("verify --data {data}"))["difference_count"], 0);
        fs::remove_dir_all(sandbox.path(&data)).unwrap();
    }
}

#[test]
fn killed_again_and_again() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", edges());
    sandbox.write("before.csv", "1,2,7\n999999,1,8\n");
    for data in ["whole", "killed"] {
        sandbox.ok(&format!("import before.csv --data {data}"));
        sandbox.ok(&format!("unfollow 1 2 --data {data}"));
    }
    sandbox.ok("import edges.csv --skip-invalid --data whole");
    let line = "import edges.csv --skip-invalid --memory 1 --data killed";
    for after_lines in [2, 6, 10, 14, 18, 22] {
        import_and_kill(&sandbox, line, after_lines);
    }
    sandbox.ok(line);
    assert_eq!(sandbox.export("killed"), sandbox.export("whole"));
    assert_eq!(sandbox.json("verify --data killed")["difference_count"], 0);
}

#[test]
fn nothing_is_visible_before_the_end() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", edges());
    sandbox.ok("follow 1 2");
    let before = sandbox.export("kinfolk-data");
    import_and_kill(&sandbox, "import edges.csv --skip-invalid --memory 1", 10);
    assert_eq!(sandbox.export("kinfolk-data"), before);
    assert_eq!(sandbox.json("changes")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_changed_file_is_another_import() {
    let sandbox = Sandbox::new();
    let text = edges();
    sandbox.write("edges.csv", &text);
    import_and_kill(&sandbox, "import edges.csv --skip-invalid --memory 1", 15);
    let other: String = text.lines().skip(100_000).map(|line| format!("{line}\n")).collect();
    sandbox.write("edges.csv", &other);
    sandbox.ok("import edges.csv --skip-invalid --memory 1");
    sandbox.write("other.csv", &other);
    sandbox.ok("import other.csv --skip-invalid --data whole");
    assert_eq!(sandbox.export("kinfolk-data"), sandbox.export("whole"));
}
