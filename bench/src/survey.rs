//! One pass over the generated edges: a uniform sample of them, and the accounts that pages are read of.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::random::Random;

/// How many edges the sample holds at most.
const SAMPLE_MAX: usize = 2_000_000;
/// How many accounts of each sort are kept.
const ACCOUNTS_MAX: usize = 10_000;
/// A small account: enough followers for a full page of 50, not many more.
const SMALL: std::ops::RangeInclusive<u32> = 51..=500;

/// An edge between integer ids, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    pub follower: u64,
    pub followee: u64,
}

/// The ids that users have: all from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    pub first: u64,
    pub last: u64,
}

impl Users {
    pub fn count(self) -> u64 {
        self.last - self.first + 1
    }

    /// A user at random.
    pub fn random(self, random: &mut Random) -> u64 {
        self.first + random.below(self.count())
    }

    /// Two different users at random.
    pub fn random_pair(self, random: &mut Random) -> Pair {
        let count = self.count();
        let follower = random.below(count);
        let followee = (follower + 1 + random.below(count - 1)) % count;
        Pair { follower: self.first + follower, followee: self.first + followee }
    }
}

/// What the benchmarks need to know about the generated graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Survey {
    /// Lines with an edge in the file.
    pub edges: u64,
    pub users: Users,
    /// The account with the most followers.
    pub largest: u64,
    pub largest_followers: u64,
    /// Accounts with 51 to 500 followers.
    pub small_by_followers: Vec<u64>,
    /// Accounts that follow 51 to 500.
    pub small_by_following: Vec<u64>,
    /// Edges, each of the file's as likely as the others, in random order.
    pub sample: Vec<Pair>,
}

impl Survey {
    /// Surveys a file of edges.
    pub fn of(csv: &Path) -> Result<Self> {
        let mut random = Random::new(0x5eed);
        let mut edges = 0_u64;
        let mut sample = Vec::new();
        let mut degrees: Vec<[u32; 2]> = Vec::new();
        let mut users = Users { first: u64::MAX, last: 0 };
        for_each_edge(csv, |pair| {
            let (low, high) = (pair.follower.min(pair.followee), pair.follower.max(pair.followee));
            users.first = users.first.min(low);
            users.last = users.last.max(high);
            if high >= degrees.len() as u64 {
                if high >= u64::from(u32::MAX) {
                    bail!("user {high} is not from the generator: its ids are small integers");
                }
                degrees.resize(high as usize + 1, [0; 2]);
            }
            degrees[pair.follower as usize][0] += 1;
            degrees[pair.followee as usize][1] += 1;
            edges += 1;
            if sample.len() < SAMPLE_MAX {
                sample.push(pair);
            } else if let Some(slot) = sample.get_mut(random.below(edges) as usize) {
                *slot = pair;
            }
            Ok(())
        })?;
        random.shuffle(&mut sample);
        let largest =
            (0..degrees.len()).max_by_key(|&user| degrees[user][1]).context("the CSV has no edges")?;
        let mut small = |side: usize| {
            let accounts = (0..degrees.len()).filter(|&user| SMALL.contains(&degrees[user][side]));
            let mut accounts: Vec<u64> = accounts.map(|user| user as u64).collect();
            random.shuffle(&mut accounts);
            accounts.truncate(ACCOUNTS_MAX);
            accounts
        };
        let (small_by_following, small_by_followers) = (small(0), small(1));
        if small_by_following.is_empty() || small_by_followers.is_empty() {
            bail!("no account has between {} and {} edges: take a larger graph", SMALL.start(), SMALL.end());
        }
        Ok(Self {
            edges,
            users,
            largest: largest as u64,
            largest_followers: u64::from(degrees[largest][1]),
            small_by_followers,
            small_by_following,
            sample,
        })
    }

    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read(file)?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged: remove it", file.display()))
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        let unfinished = file.with_extension("tmp");
        fs::write(&unfinished, serde_json::to_vec(self)?)?;
        Ok(fs::rename(&unfinished, file)?)
    }

    /// `count` pairs to check: every other one an edge that exists, the rest two users at random.
    pub fn pairs_to_check(&self, count: usize, seed: u64) -> Vec<Pair> {
        let mut random = Random::new(seed);
        let mut existing = self.sample.iter().copied().cycle();
        let mut pairs: Vec<Pair> = (0..count)
            .map(|at| match at % 2 {
                0 => existing.next().expect("a survey has at least one edge"),
                _ => self.users.random_pair(&mut random),
            })
            .collect();
        random.shuffle(&mut pairs);
        pairs
    }
}

/// Calls back for each line of a file: `follower,followee[,since]`, or with tabs or spaces; a first line without numbers is a header.
pub fn for_each_edge(csv: &Path, mut each: impl FnMut(Pair) -> Result<()>) -> Result<()> {
    let file = File::open(csv).with_context(|| format!("cannot read {}", csv.display()))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    let mut number = 0_u64;
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        match parse(&line) {
            Some(pair) => each(pair)?,
            None if number == 1 || line.starts_with(b"#") => {}
            None => bail!("line {number} of {} is not an edge", csv.display()),
        }
        line.clear();
    }
    Ok(())
}

fn parse(line: &[u8]) -> Option<Pair> {
    let mut fields = line.trim_ascii_end().split(|byte| b",\t ".contains(byte));
    let mut id = || {
        let digits = fields.next().filter(|digits| !digits.is_empty())?;
        digits.iter().try_fold(0_u64, |value, digit| {
            digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
        })
    };
    Some(Pair { follower: id()?, followee: id()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_finds_the_accounts() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("edges.csv");
        let mut text = String::from("follower,followee,since\n");
        // 1 is followed by 1,000; 2 by 60; 3 follows 70.
        let edges = (10..1_010)
            .map(|id| (id, 1))
            .chain((10..70).map(|id| (id, 2)))
            .chain((2_000..2_070).map(|id| (3, id)));
        for (follower, followee) in edges {
            text.push_str(&format!("{follower},{followee},1700000000000\n"));
        }
        fs::write(&csv, text).unwrap();
        let survey = Survey::of(&csv).unwrap();
        assert_eq!((survey.edges, survey.users), (1_130, Users { first: 1, last: 2_069 }));
        assert_eq!((survey.largest, survey.largest_followers), (1, 1_000));
        assert_eq!(
            (survey.small_by_followers.clone(), survey.small_by_following.clone()),
            (vec![2], vec![3])
        );
        assert_eq!(survey.sample.len(), 1_130);

        let file = folder.path().join("survey.json");
        survey.write(&file).unwrap();
        let pairs = Survey::read(&file).unwrap().pairs_to_check(1_000, 1);
        assert_eq!(pairs, survey.pairs_to_check(1_000, 1));
        assert!(pairs.iter().filter(|pair| survey.sample.contains(pair)).count() >= 500);
        assert!(pairs.iter().all(|pair| pair.follower != pair.followee));
    }

    #[test]
    fn lines_are_read_strictly() {
        assert_eq!(parse(b"1,22\n"), Some(Pair { follower: 1, followee: 22 }));
        assert_eq!(parse(b"1,2,2024-01-01T00:00:00Z\r\n"), Some(Pair { follower: 1, followee: 2 }));
        assert_eq!(parse(b"1\t22\n"), Some(Pair { follower: 1, followee: 22 }));
        for line in [&b"1\n"[..], b",2\n", b"a,b\n", b"\n"] {
            assert_eq!(parse(line), None);
        }
    }
}
