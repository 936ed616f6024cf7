//! The PySpark job that suggestions for everyone stand beside: runs it and reads what it printed. No definition of
//! suggestions here: that is in `bench/pyspark/suggest.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::dataset::Scratch;
use crate::process::run;

const INSTALL: &str = "scripts/install-pyspark";
const JOB: &str = "bench/pyspark/suggest.py";

/// A Python that has PySpark.
#[derive(Debug)]
pub struct Spark {
    python: PathBuf,
}

/// A suggestion as both sides tell it: who, through how many, and the score in steps of 2^-32.
pub type Told = (u64, u32, u64);

/// Sums over everything that is stored, to compare both sides by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub rows: u64,
    pub id_sum: u64,
    pub mutual_count_sum: u64,
}

/// What the job told, its clock starting with its process.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Job {
    #[serde(flatten)]
    pub sums: Sums,
    /// When the edges were in memory.
    pub read_s: f64,
    /// When the results were on disk.
    pub total_s: f64,
    /// The processor time in between.
    pub suggest_cpu_s: f64,
    pub memory_bytes_max: u64,
    /// By user.
    pub sample: BTreeMap<String, Vec<Told>>,
}

impl Job {
    /// From the edges in memory to the results on disk.
    pub fn suggest_s(&self) -> f64 {
        self.total_s - self.read_s
    }
}

impl Spark {
    pub fn install() -> Result<Self> {
        Ok(Self { python: run(&mut Command::new(INSTALL))?.trim().into() })
    }

    /// Suggests for everyone in a file of edges, and tells what it suggests to some users.
    pub fn suggest(&self, edges: &Path, scratch: &Path, cores: usize, sample: &[u64]) -> Result<Job> {
        eprintln!("running PySpark");
        let scratch = Scratch::new(scratch.to_owned())?;
        let users: Vec<String> = sample.iter().map(u64::to_string).collect();
        let mut command = Command::new(&self.python);
        command.arg(JOB).arg(edges).arg(scratch.path().join("output"));
        command.arg("--scratch").arg(scratch.path()).arg("--cores").arg(cores.to_string());
        command.arg("--sample").arg(users.join(","));
        parse(&run(&mut command)?)
    }
}

fn parse(printed: &str) -> Result<Job> {
    let line = printed.lines().rev().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("the PySpark job printed no result: {printed}"))?;
    serde_json::from_str(line).context("the PySpark job printed something else than its result")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_job_prints_is_read() {
        let printed = "a warning\n{\"edges\":9,\"rows\":2,\"id_sum\":7,\"mutual_count_sum\":3,\"session_s\":1.0,\
                       \"read_s\":2.0,\"total_s\":5.5,\"suggest_cpu_s\":6.0,\"memory_bytes_max\":1024,\
                       \"sample\":{\"5\":[[3,2,6000000000],[4,1,1]],\"6\":[]}}\n";
        let job = parse(printed).unwrap();
        assert_eq!(job.sums, Sums { rows: 2, id_sum: 7, mutual_count_sum: 3 });
        assert!((job.suggest_s() - 3.5).abs() < 1e-9);
        assert_eq!(job.sample["5"], [(3, 2, 6_000_000_000), (4, 1, 1)]);
        assert!(parse("no luck").is_err());
    }
}
