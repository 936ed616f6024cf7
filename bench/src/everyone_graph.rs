//! The graphs that suggestions for everyone are computed on: the generated one of a size, and the real one. Both
//! sides of the comparison read the same file of edges.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use kinfolk_core::IdKind;
use kinfolk_embedded::{Embedded, Settings};

use crate::dataset::{Dataset, Scratch, add_edges};
use crate::options::Options;
use crate::process::run;
use crate::random::Random;
use crate::size::Size;
use crate::survey::for_each_edge;

const TEST_DATA: &str = "KINFOLK_TEST_DATA";
/// How many users have their results compared one by one, and how many of these are the ones who follow most.
const SAMPLE: usize = 200;
const SAMPLE_LARGEST: usize = 20;

/// A graph, and what a comparison needs to know of it.
#[derive(Debug)]
pub struct Graph {
    /// The name of the results.
    pub name: &'static str,
    pub is_real: bool,
    pub size: Size,
    pub folder: PathBuf,
    pub edges_file: PathBuf,
    pub store: PathBuf,
    /// Everybody who follows anyone.
    pub followers: Vec<u64>,
    /// Walks of two steps: over all users, followers times followees.
    pub paths: u64,
    pub sample: Vec<u64>,
}

impl Graph {
    pub fn generated(options: &Options) -> Result<Self> {
        let data = Dataset::prepare(options)?;
        let (folder, store) = (data.folder().to_owned(), data.store_folder()?);
        Self::of("everyone", folder, data.csv_without_times(), store, data.size)
    }

    /// The file of the real graph, if there is one.
    pub fn twitter_file() -> Option<PathBuf> {
        let file = Path::new(&env::var_os(TEST_DATA)?).join("ego-twitter.tsv.zst");
        file.exists().then_some(file)
    }

    /// Unpacks the edges of the real graph into a folder.
    pub fn unpack_twitter(folder: &Path) -> Result<PathBuf> {
        let packed = Self::twitter_file()
            .with_context(|| format!("set {TEST_DATA} to a folder with ego-twitter.tsv.zst"))?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let edges_file = folder.join("edges.tsv");
        run(Command::new("zstd")
            .args(["--decompress", "--force", "--quiet", "-o"])
            .arg(&edges_file)
            .arg(packed))?;
        Ok(edges_file)
    }

    pub fn twitter(options: &Options) -> Result<Self> {
        let folder = options.work.join("ego-twitter");
        let edges_file = Self::unpack_twitter(&folder)?;
        let store = folder.join("store");
        let mut edges = 0;
        for_each_edge(&edges_file, |_| {
            edges += 1;
            Ok(())
        })?;
        if !store.exists() {
            make_store(&edges_file, &folder, &store)?;
        }
        let mut graph = Self::of("everyone-twitter", folder, edges_file, store, Size::of(edges))?;
        graph.is_real = true;
        Ok(graph)
    }

    fn of(
        name: &'static str,
        folder: PathBuf,
        edges_file: PathBuf,
        store: PathBuf,
        size: Size,
    ) -> Result<Self> {
        let mut degrees: Vec<[u32; 2]> = Vec::new();
        for_each_edge(&edges_file, |pair| {
            let last = pair.follower.max(pair.followee) as usize;
            if last >= degrees.len() {
                degrees.resize(last + 1, [0; 2]);
            }
            degrees[pair.follower as usize][0] += 1;
            degrees[pair.followee as usize][1] += 1;
            Ok(())
        })?;
        let paths = degrees.iter().map(|&[following, followers]| u64::from(following) * u64::from(followers));
        let followers = (0..degrees.len()).filter(|&user| degrees[user][0] > 0);
        let followers: Vec<u64> = followers.map(|user| user as u64).collect();
        let mut by_following = followers.clone();
        Random::new(9).shuffle(&mut by_following);
        let mut sample: Vec<u64> = by_following.iter().copied().take(SAMPLE - SAMPLE_LARGEST).collect();
        by_following.sort_by_key(|&user| std::cmp::Reverse(degrees[user as usize][0]));
        sample.extend(by_following.iter().take(SAMPLE_LARGEST));
        sample.sort_unstable();
        sample.dedup();
        Ok(Self {
            name,
            is_real: false,
            size,
            folder,
            edges_file,
            store,
            paths: paths.sum(),
            followers,
            sample,
        })
    }
}

fn make_store(edges_file: &Path, folder: &Path, store: &Path) -> Result<()> {
    eprintln!("importing {}", edges_file.display());
    let unfinished = Scratch::new(folder.join("store-unfinished"))?;
    let made = Embedded::create(unfinished.path(), IdKind::Integer, Settings::default())?;
    add_edges(&made, "twitter", |add| for_each_edge(edges_file, |pair| add(pair, None)))?;
    made.close()?;
    Ok(fs::rename(unfinished.path(), store)?)
}
