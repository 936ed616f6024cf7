//! `report`: all JSON files of a folder as one Markdown page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::measurement::{Results, markdown};

/// The order of the table; results of other names come after these.
const ORDER: &[&str] = &[
    "check",
    "follow",
    "mixed",
    "import",
    "start",
    "pages",
    "overlap",
    "suggest",
    "everyone",
    "everyone-twitter",
    "feed",
    "feed-run",
    "comments",
    "resp",
    "rest",
    "design",
    "scale",
    "fleet-checks",
    "growth",
];

/// Writes `README.md` into the folder of the JSON files, and prints it.
pub fn run(folder: &Path) -> Result<()> {
    let page = page(&read_all(folder)?);
    fs::write(folder.join("README.md"), &page)?;
    print!("{page}");
    Ok(())
}

fn read_all(folder: &Path) -> Result<Vec<Results>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut results = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if file.extension().is_some_and(|ending| ending == "json") {
            results.push(Results::read(&file)?);
        }
    }
    let rank = |name: &str| ORDER.iter().position(|&known| known == name).unwrap_or(ORDER.len());
    results.sort_by(|left, right| {
        let key = |results: &Results| (rank(&results.name), results.name.clone(), results.edges);
        key(left).cmp(&key(right))
    });
    Ok(results)
}

fn page(results: &[Results]) -> String {
    let mut page = String::from(
        "# Results\n\n\
         Written by `cargo run --release -p kinfolk-bench -- report` from the JSON files beside this page; \
         [how each is measured](../README.md).\n",
    );
    let mut machines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for result in results {
        machines.entry(described(result)).or_default().push(format!("`{}` at {}", result.name, result.edges));
    }
    for (machine, measured) in machines {
        page.push_str(&format!("\n{machine}: {}.\n", measured.join(", ")));
    }
    page.push_str(&format!("\n{}", markdown(results)));
    let noted = results.iter().filter(|result| !result.notes.is_empty());
    page.push_str("\n## Notes\n");
    for result in noted {
        for note in &result.notes {
            page.push_str(&format!("- `{}` at {}: {note}\n", result.name, result.edges));
        }
    }
    page
}

fn described(results: &Results) -> String {
    let machine = &results.machine;
    let day = results.date.split('T').next().unwrap_or_default();
    format!(
        "Measured on {day} with {}, {} cores, {} GiB, Linux {}",
        machine.cpu, machine.cores, machine.memory_gib, machine.kernel
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Recorder, Row};
    use crate::size::Size;

    const ROWS: &[Row] = &[Row::new("a", "a row", "µs")];

    #[test]
    fn the_page_has_every_result_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for (name, size) in
            [("pages", Size::MILLION), ("check", Size::HUNDRED_MILLION), ("check", Size::MILLION)]
        {
            let mut recorder = Recorder::new(ROWS);
            recorder.record("a", 1.0);
            recorder.finish(name, size, vec![format!("noted {name}")]).publish(folder.path()).unwrap();
        }
        run(folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("README.md")).unwrap();
        let order: Vec<_> = page.lines().filter(|line| line.starts_with("- `")).collect();
        assert_eq!(
            order,
            [
                "- `check` at 1m: noted check",
                "- `check` at 100m: noted check",
                "- `pages` at 1m: noted pages"
            ]
        );
        assert_eq!(page.matches("| a row |").count(), 3);
        assert_eq!(page.matches("Measured on").count(), 1, "{page}");
        assert!(page.contains(": `check` at 1m, `check` at 100m, `pages` at 1m.\n"), "{page}");
    }
}
