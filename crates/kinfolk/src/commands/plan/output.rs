//! How a plan is printed: sections of lines with value, origin and formula, a table of growth, and notes.

use std::io::{self, Write};

use kinfolk_core::IdKind;
use serde::{Serialize, Serializer};

use super::arithmetic::Figures;
use super::{Planned, YEARS, lines, notes};
use crate::print::{Align, Print, grouped, write_table};

/// A value with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Amount {
    Count(u64),
    PerSecond(u64),
    Bytes(u64),
    BytesPerSecond(u64),
    Cores(f64),
    Share(f64),
}

impl Amount {
    fn unit(self) -> &'static str {
        match self {
            Self::Count(_) => "count",
            Self::PerSecond(_) => "per_second",
            Self::Bytes(_) => "bytes",
            Self::BytesPerSecond(_) => "bytes_per_second",
            Self::Cores(_) => "cores",
            Self::Share(_) => "share",
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Count(number) => grouped(number),
            Self::PerSecond(number) => format!("{}/s", grouped(number)),
            Self::Bytes(number) => bytes(number),
            Self::BytesPerSecond(number) => format!("{}/s", bytes(number)),
            Self::Cores(number) => format!("{number:.1}"),
            Self::Share(share) => percent(share),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Count(number)
            | Self::PerSecond(number)
            | Self::Bytes(number)
            | Self::BytesPerSecond(number) => serializer.serialize_u64(number),
            Self::Cores(number) | Self::Share(number) => serializer.serialize_f64(number),
        }
    }
}

/// What a figure rests on, the weakest of all that it is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Basis {
    /// Only on the workload that was given.
    Exact,
    /// Also on what was measured.
    Measured,
    /// Also on an assumption that a flag changes.
    Assumed,
}

impl Basis {
    fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Measured => "measured",
            Self::Assumed => "assumed",
        }
    }
}

/// One figure.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) value: Amount,
    pub(super) basis: Basis,
    pub(super) formula: String,
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            name: &'a str,
            value: Amount,
            unit: &'a str,
            basis: Basis,
            formula: &'a str,
        }
        let Self { name, value, basis, formula } = self;
        let unit = value.unit();
        Fields { name, value: *value, unit, basis: *basis, formula }.serialize(serializer)
    }
}

/// Figures about one thing.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) lines: Vec<Line>,
}

/// What is printed.
#[derive(Serialize)]
pub(super) struct Report {
    workload: WorkloadShown,
    sections: Vec<Section>,
    growth: [Year; YEARS.len()],
    notes: Vec<String>,
}

#[derive(Serialize)]
struct WorkloadShown {
    ids: &'static str,
    users: u64,
    following: u64,
    checks_per_second: u64,
    writes_per_second: u64,
    peak: f64,
    growth: f64,
}

/// The fleet after some years.
#[derive(Serialize)]
struct Year {
    years: i32,
    edges: u64,
    rows_per_shard: u64,
    disk: u64,
    hosts: u64,
    api_processes: u64,
    redis_nodes: u64,
    filter_memory_for_all: u64,
}

impl Report {
    pub(super) fn of(planned: &Planned) -> Self {
        let work = &planned.work;
        let ids = match work.ids {
            IdKind::Integer => "integer",
            IdKind::Uuid => "uuid",
        };
        Self {
            workload: WorkloadShown {
                ids,
                users: work.users,
                following: work.following,
                checks_per_second: work.checks_per_second,
                writes_per_second: work.writes_per_second,
                peak: work.peak,
                growth: work.growth,
            },
            sections: lines::sections(planned),
            growth: std::array::from_fn(|index| Year::of(YEARS[index], &planned.figures[index])),
            notes: notes::notes(planned),
        }
    }
}

impl Year {
    fn of(years: i32, figures: &Figures) -> Self {
        Self {
            years,
            edges: figures.edges,
            rows_per_shard: figures.shard_rows,
            disk: figures.disk.needed,
            hosts: figures.hosts.hosts,
            api_processes: figures.processes.api,
            redis_nodes: figures.redis.nodes,
            filter_memory_for_all: figures.filter.all,
        }
    }

    fn cells(&self) -> [String; 8] {
        [
            if self.years == 0 { "now".to_owned() } else { format!("in {} y", self.years) },
            grouped(self.edges),
            grouped(self.rows_per_shard),
            bytes(self.disk),
            grouped(self.hosts),
            grouped(self.api_processes),
            grouped(self.redis_nodes),
            bytes(self.filter_memory_for_all),
        ]
    }
}

impl Print for Report {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let WorkloadShown { ids, users, following, checks_per_second, writes_per_second, peak, growth } =
            self.workload;
        writeln!(
            out,
            "{} users with {ids} ids, {} followees each; {} checks/s, {} writes/s, {peak} × at the peak",
            grouped(users),
            grouped(following),
            grouped(checks_per_second),
            grouped(writes_per_second),
        )?;
        self.write_sections(out)?;
        writeln!(out, "\ngrowth of {} a year, in users and rates", percent(growth))?;
        let right = |name| (name, Align::Right);
        let columns = [
            ("  when", Align::Left),
            right("edges"),
            right("rows a shard"),
            right("disk"),
            right("hosts"),
            right("api"),
            right("redis nodes"),
            right("filter of all"),
        ];
        let rows = self.growth.iter().map(|year| {
            let mut cells = year.cells();
            cells[0].insert_str(0, "  ");
            cells
        });
        write_table(out, columns, rows)?;
        writeln!(out, "\nnotes")?;
        self.notes.iter().try_for_each(|note| writeln!(out, "- {note}"))
    }
}

impl Report {
    fn write_sections(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines = || self.sections.iter().flat_map(|section| &section.lines);
        let name_width = lines().map(|line| line.name.chars().count()).max().unwrap_or_default();
        let value_width = lines().map(|line| line.value.text().chars().count()).max().unwrap_or_default();
        for section in &self.sections {
            writeln!(out, "\n{}", section.name)?;
            for Line { name, value, basis, formula } in &section.lines {
                let (value, basis) = (value.text(), basis.name());
                writeln!(out, "  {name:name_width$}  {value:>value_width$}  {basis:8}  {formula}")?;
            }
        }
        Ok(())
    }
}

const BYTE_UNITS: [(&str, f64); 5] = [("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];

/// Bytes in decimal units, as disks are sold.
pub(super) fn bytes(number: u64) -> String {
    let fits = BYTE_UNITS.iter().find(|(_, unit)| number as f64 >= *unit);
    fits.map_or_else(|| format!("{number} B"), |(name, unit)| format!("{:.1} {name}", number as f64 / unit))
}

/// A share as a percentage, with as many digits as matter.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        for (number, text) in [(999, "999 B"), (1_000, "1.0 kB"), (312_500_000_000, "312.5 GB")] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(
            (percent(0.3), percent(0.0545), percent(1.0)),
            ("30 %".into(), "5.5 %".into(), "100 %".into())
        );
        assert_eq!(Amount::PerSecond(1_160_000).text(), "1,160,000/s");
    }
}
