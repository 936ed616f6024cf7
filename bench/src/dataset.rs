//! The graph that is measured: generated once for each size, imported by the real command, kept between runs.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use anyhow::{Context, Result, bail};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Timestamp};
use kinfolk_embedded::{Embedded, ImportOptions, Settings};

use crate::options::Options;
use crate::process::{Usage, run_measured};
use crate::random::Random;
use crate::size::Size;
use crate::survey::{Pair, Survey, for_each_edge};

const SEED: u64 = 42;
const CSV: &str = "edges.csv";
const CSV_WITHOUT_TIMES: &str = "edges-without-times.csv";
/// 2020-01-01.
const TIMES_FROM_MILLIS: u64 = 1_577_836_800_000;
/// Five years.
const TIMES_SPREAD_MILLIS: u64 = 5 * 365 * 86_400_000;

/// A generated graph on disk.
#[derive(Debug)]
pub struct Dataset {
    pub size: Size,
    pub survey: Survey,
    folder: PathBuf,
    kinfolk: PathBuf,
}

impl Dataset {
    /// Generates what is not there yet: the edges without times, and their survey.
    pub fn prepare(options: &Options) -> Result<Self> {
        let folder = options.work.join(options.edges.to_string());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let kinfolk = match &options.kinfolk {
            Some(program) => program.clone(),
            None => build_kinfolk(&[])?,
        };
        let survey_file = folder.join("survey.json");
        let data =
            |survey| Self { size: options.edges, survey, folder: folder.clone(), kinfolk: kinfolk.clone() };
        if survey_file.exists() {
            return Ok(data(Survey::read(&survey_file)?));
        }
        let survey = generate(&kinfolk, options.edges, &folder)?;
        survey.write(&survey_file)?;
        Ok(data(survey))
    }

    /// The edges as `follower,followee,since` lines, the times spread evenly over five years; written if it is not there yet.
    pub fn csv(&self) -> Result<PathBuf> {
        let file = self.folder.join(CSV);
        if !file.exists() {
            eprintln!("giving {} edges times", self.size);
            let unfinished = file.with_extension("tmp");
            let mut with_times = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
            let mut random = Random::new(SEED);
            for_each_edge(&self.csv_without_times(), |pair| {
                Ok(writeln!(with_times, "{},{},{}", pair.follower, pair.followee, random_time(&mut random))?)
            })?;
            with_times.into_inner()?.sync_all()?;
            fs::rename(&unfinished, &file)?;
        }
        Ok(file)
    }

    /// The edges as `follower,followee` lines.
    pub fn csv_without_times(&self) -> PathBuf {
        self.folder.join(CSV_WITHOUT_TIMES)
    }

    /// The kinfolk program.
    pub fn kinfolk(&self) -> &Path {
        &self.kinfolk
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the store with the graph in it, imported if it is not there yet. Benchmarks that write
    /// take a [`Dataset::scratch_store`] instead.
    pub fn store_folder(&self) -> Result<PathBuf> {
        let store = self.folder.join("store");
        if !store.exists() {
            let unfinished = self.folder.join("store-unfinished");
            self.import(&self.csv()?, &unfinished)?;
            fs::rename(&unfinished, &store)?;
        }
        Ok(store)
    }

    /// Opens the store with the graph in it.
    pub fn open(&self) -> Result<Embedded> {
        Ok(Embedded::open(&self.store_folder()?, Settings::default())?)
    }

    /// A copy of the store for a benchmark that writes; it goes when the guard is dropped.
    pub fn scratch_store(&self) -> Result<Scratch> {
        Scratch::copy_of(&self.store_folder()?, self.folder.join("store-scratch"))
    }

    /// The folder of a copy of the store that has further edges, made if it is not there yet.
    pub fn store_folder_with(&self, name: &str, more: impl FnOnce() -> Vec<Pair>) -> Result<PathBuf> {
        self.store_folder_filled(name, Settings::default(), |store| {
            add_edges_at_random_times(store, name, more())
        })
    }

    /// The folder of a copy of the store to which something was added, made if it is not there yet.
    pub fn store_folder_filled(
        &self,
        name: &str,
        settings: Settings,
        fill: impl FnOnce(&Embedded) -> Result<()>,
    ) -> Result<PathBuf> {
        let store = self.folder.join(name);
        if !store.exists() {
            let unfinished = self.folder.join(format!("{name}-unfinished"));
            let unfinished = Scratch::copy_of(&self.store_folder()?, unfinished)?;
            let opened = Embedded::open(unfinished.path(), settings)?;
            fill(&opened)?;
            opened.close()?;
            fs::rename(unfinished.path(), &store)?;
        }
        Ok(store)
    }

    /// Runs `kinfolk import` on a file into a folder that is emptied first.
    pub fn import(&self, csv: &Path, store: &Path) -> Result<Usage> {
        eprintln!("importing {} edges", self.size);
        remove_folder(store)?;
        let mut command = Command::new(&self.kinfolk);
        command.arg("import").arg("--data").arg(store).arg("--no-limit").arg(csv);
        run_measured(command, &self.folder.join("import.log"))
    }
}

/// A folder that is removed with its guard.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(folder: PathBuf) -> Result<Self> {
        remove_folder(&folder)?;
        Ok(Self(folder))
    }

    /// A copy of another folder.
    pub fn copy_of(original: &Path, folder: PathBuf) -> Result<Self> {
        let scratch = Self::new(folder)?;
        copy_folder(original, scratch.path())?;
        // What is still to be written would hold up the syncs that are measured.
        rustix::fs::sync();
        Ok(scratch)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_folder(&self.0) {
            eprintln!("{error:#}");
        }
    }
}

/// The kind of edge that is measured.
pub const KIND: EdgeKind = EdgeKind::Follow;

/// The edge of a pair.
pub fn edge(pair: Pair) -> Edge {
    Edge { follower: Id::Integer(pair.follower), followee: Id::Integer(pair.followee) }
}

/// Imports edges into a store that is open here, with their times or that of the import. Counts those that are new.
pub fn add_edges(
    store: &Embedded,
    name: &str,
    edges: impl FnOnce(&mut dyn FnMut(Pair, Option<Timestamp>) -> Result<()>) -> Result<()>,
) -> Result<u64> {
    let (kind, fingerprint) = (KIND, name.to_owned());
    let options = ImportOptions { kind, following_limit: None, fingerprint, sort_memory: 256 << 20 };
    let mut import = store.import(&options)?;
    edges(&mut |pair, since| Ok(import.push(edge(pair), since)?))?;
    Ok(import.finish(&|_| {})?.added)
}

/// Imports edges as if they had been made over the years.
pub fn add_edges_at_random_times(
    store: &Embedded,
    name: &str,
    edges: impl IntoIterator<Item = Pair>,
) -> Result<()> {
    let mut random = Random::new(SEED);
    add_edges(store, name, |add| {
        edges.into_iter().try_for_each(|pair| add(pair, Some(random_time(&mut random))))
    })?;
    Ok(())
}

fn random_time(random: &mut Random) -> Timestamp {
    Timestamp::from_millis(TIMES_FROM_MILLIS + random.below(TIMES_SPREAD_MILLIS))
}

/// The bytes that a folder takes on disk, in allocated blocks.
pub fn disk_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}

/// Builds the program with the profile that is released and some features, beside this one.
pub fn build_kinfolk(features: &[&str]) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--package", "kinfolk", "--bin", "kinfolk"])
        .args(features.iter().flat_map(|feature| ["--features", feature]))
        .status();
    if !status.context("cannot start cargo; name a program with --kinfolk")?.success() {
        bail!("kinfolk did not build; name a program with --kinfolk");
    }
    let own = env::current_exe()?;
    let program = own.parent().context("a program is in a folder")?.join("kinfolk");
    if !program.exists() {
        bail!("run this program with `cargo run --release`, or name a kinfolk program with --kinfolk");
    }
    Ok(program)
}

/// Writes the edges without times, and surveys them.
fn generate(kinfolk: &Path, size: Size, folder: &Path) -> Result<Survey> {
    eprintln!("generating {size} edges");
    let without_times = folder.join(CSV_WITHOUT_TIMES);
    let mut command = Command::new(kinfolk);
    command.arg("generate").arg(&without_times);
    for (flag, value) in [("--edges", size.edges()), ("--users", size.users()), ("--seed", SEED)] {
        command.arg(flag).arg(value.to_string());
    }
    run_measured(command, &folder.join("generate.log"))?;
    Survey::of(&without_times)
}

/// Copies a folder and all that is in it.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_copied_weighed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/file"), vec![1; 10_000]).unwrap();
        let scratch = Scratch::new(folder.path().join("to")).unwrap();
        copy_folder(&from, scratch.path()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::read(path.join("deep/file")).unwrap(), vec![1; 10_000]);
        assert!(disk_bytes(&path).unwrap() >= 10_000);
        drop(scratch);
        assert!(!path.exists());
    }
}
