//! Figures of one benchmark: its rows, their rounds and targets, the JSON file and the table. No measuring.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use kinfolk_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::size::Size;

/// What a figure has to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Below(f64),
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    pub fn is_met_by(self, figure: f64) -> bool {
        match self {
            Self::Below(bound) => figure < bound,
            Self::AtMost(bound) => figure <= bound,
            Self::AtLeast(bound) => figure >= bound,
        }
    }

    pub fn text(self) -> String {
        match self {
            Self::Below(bound) => format!("< {}", number(bound)),
            Self::AtMost(bound) => format!("≤ {}", number(bound)),
            Self::AtLeast(bound) => format!("≥ {}", number(bound)),
        }
    }
}

/// A row that a benchmark can fill. The key is its stable name in the JSON file.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub key: &'static str,
    pub what: &'static str,
    pub unit: &'static str,
    pub target: Option<Target>,
    /// The size of graph that the target is meant for; `None`: any.
    pub target_from: Option<Size>,
}

impl Row {
    pub const fn new(key: &'static str, what: &'static str, unit: &'static str) -> Self {
        Self { key, what, unit, target: None, target_from: None }
    }

    pub const fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    pub const fn target_from(mut self, size: Size) -> Self {
        self.target_from = Some(size);
        self
    }
}

/// A row with its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub key: String,
    pub what: String,
    pub unit: String,
    pub rounds: Vec<f64>,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub target: Option<Target>,
    /// Whether the median reaches the target; nothing where there is none, or it is meant for a larger graph.
    pub met: Option<bool>,
}

impl Figure {
    fn new(row: &Row, rounds: Vec<f64>, size: Size) -> Self {
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        let meant = row.target_from.is_none_or(|from| size >= from);
        Self {
            key: row.key.to_owned(),
            what: row.what.to_owned(),
            unit: row.unit.to_owned(),
            median,
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            target: row.target,
            met: row.target.filter(|_| meant).map(|target| target.is_met_by(median)),
            rounds,
        }
    }
}

/// The JSON file of one benchmark at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    pub name: String,
    pub edges: Size,
    pub date: String,
    pub machine: Machine,
    /// What one needs to know to read the figures.
    pub notes: Vec<String>,
    pub figures: Vec<Figure>,
    /// What happened in the course of a long run, a value for each second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
}

/// A value for each second of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub key: String,
    pub what: String,
    pub unit: String,
    pub values: Vec<f64>,
}

impl Series {
    /// Values are rounded to three decimals.
    pub fn new(key: &str, what: &str, unit: &str, values: Vec<f64>) -> Self {
        Self {
            key: key.to_owned(),
            what: what.to_owned(),
            unit: unit.to_owned(),
            values: values.into_iter().map(|value| (value * 1e3).round() / 1e3).collect(),
        }
    }
}

impl Results {
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not a result file", file.display()))
    }

    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// Writes `NAME-EDGES.json` into the folder, whole or not at all, and prints the table.
    pub fn publish(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let file = folder.join(format!("{}-{}.json", self.name, self.edges));
        let unfinished = file.with_extension("json.tmp");
        fs::write(&unfinished, serde_json::to_string_pretty(self)? + "\n")?;
        fs::rename(&unfinished, &file)?;
        println!("\n{}", markdown(std::slice::from_ref(self)));
        for note in &self.notes {
            println!("- {note}");
        }
        Ok(())
    }
}

/// Collects rounds while a benchmark runs.
#[derive(Debug)]
pub struct Recorder {
    rows: &'static [Row],
    rounds: Vec<Vec<f64>>,
}

impl Recorder {
    pub fn new(rows: &'static [Row]) -> Self {
        Self { rows, rounds: vec![Vec::new(); rows.len()] }
    }

    /// Adds a round to the row of that key, which has to be one of the benchmark's rows.
    pub fn record(&mut self, key: &str, figure: f64) {
        let at = self.rows.iter().position(|row| row.key == key).expect("a figure belongs to a row");
        eprintln!("  {}: {} {}", self.rows[at].what, number(figure), self.rows[at].unit);
        self.rounds[at].push(figure);
    }

    /// Adds a round to the rows of a latency: `KEY_p50` and `KEY_p99`.
    pub fn record_ms(&mut self, key: &str, latency: &Histogram) {
        self.record(&format!("{key}_p50"), latency.percentile_ms(0.5));
        self.record(&format!("{key}_p99"), latency.percentile_ms(0.99));
    }

    /// The same in microseconds.
    pub fn record_us(&mut self, key: &str, latency: &Histogram) {
        self.record(&format!("{key}_p50"), latency.percentile_us(0.5));
        self.record(&format!("{key}_p99"), latency.percentile_us(0.99));
    }

    /// The results; rows without a round, such as those of a peer that was left out, are left out.
    pub fn finish(self, name: &str, size: Size, notes: Vec<String>) -> Results {
        let filled = self.rows.iter().zip(self.rounds).filter(|(_, rounds)| !rounds.is_empty());
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Results {
            name: name.to_owned(),
            edges: size,
            date: Timestamp::from_millis(since_epoch.as_secs() * 1_000).to_string(),
            machine: Machine::read(),
            notes,
            figures: filled.map(|(row, rounds)| Figure::new(row, rounds, size)).collect(),
            series: Vec::new(),
        }
    }
}

/// The figures of many results as one table.
pub fn markdown(results: &[Results]) -> String {
    let mut table =
        String::from("| what | edges | median | from … to | target | met |\n|---|---|---|---|---|---|\n");
    for (result, figure) in results.iter().flat_map(|result| result.figures.iter().map(move |f| (result, f)))
    {
        let target =
            figure.target.map_or_else(String::new, |target| format!("{} {}", target.text(), figure.unit));
        let met = match (figure.target, figure.met) {
            (_, Some(true)) => "yes",
            (_, Some(false)) => "no",
            (Some(_), None) => "set for a larger graph",
            (None, None) => "",
        };
        table.push_str(&format!(
            "| {} | {} | {} {} | {} … {} | {} | {met} |\n",
            figure.what,
            result.edges,
            number(figure.median),
            figure.unit,
            number(figure.min),
            number(figure.max),
            target.trim_end(),
        ));
    }
    table
}

/// A figure with three digits or, from 1,000 on, as a whole number with separators.
pub fn number(figure: f64) -> String {
    if figure.abs() >= 999.5 {
        return with_separators(figure.round() as i64);
    }
    let decimals = match figure.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{figure:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn with_separators(whole: i64) -> String {
    let digits = whole.unsigned_abs().to_string();
    let mut text = String::from(if whole < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row] = &[
        Row::new("speed", "speed", "/s").target(Target::AtLeast(2.0)),
        Row::new("cost", "cost", "µs").target(Target::Below(1.0)).target_from(Size::HUNDRED_MILLION),
        Row::new("peer", "a peer", "µs"),
    ];

    fn results(size: Size) -> Results {
        let mut recorder = Recorder::new(ROWS);
        for figure in [3.0, 1.0, 2.0] {
            recorder.record("speed", figure);
        }
        recorder.record("cost", 4.0);
        recorder.finish("sample", size, vec!["a note".to_owned()])
    }

    #[test]
    fn rounds_become_a_median_and_a_spread() {
        let results = results(Size::MILLION);
        let speed = results.figure("speed").unwrap();
        assert_eq!((speed.median, speed.min, speed.max, speed.met), (2.0, 1.0, 3.0, Some(true)));
        assert!(results.figure("peer").is_none());
    }

    #[test]
    fn a_target_counts_from_its_size_on() {
        assert_eq!(results(Size::MILLION).figure("cost").unwrap().met, None);
        assert_eq!(results(Size::HUNDRED_MILLION).figure("cost").unwrap().met, Some(false));
    }

    #[test]
    fn a_published_file_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(Size::MILLION);
        results.publish(folder.path()).unwrap();
        assert_eq!(Results::read(&folder.path().join("sample-1m.json")).unwrap(), results);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.5994, 1.25, 14.0, 123.4, 999.6, 1_500_000.0, -1234.0].map(number);
        assert_eq!(texts, ["0", "0.599", "1.25", "14", "123", "1,000", "1,500,000", "-1,234"]);
    }

    #[test]
    fn the_table_tells_which_targets_are_met() {
        let table = markdown(&[results(Size::MILLION)]);
        assert!(table.contains("| speed | 1m | 2 /s | 1 … 3 | ≥ 2 /s | yes |"), "{table}");
        assert!(table.contains("| cost | 1m | 4 µs | 4 … 4 | < 1 µs | set for a larger graph |"), "{table}");
    }
}
