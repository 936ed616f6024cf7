//! `probe-check`: the same checks on the same small graph every time, for counting instructions.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Args;
use kinfolk_core::{IdKind, SystemClock};
use kinfolk_embedded::{Embedded, ImportOptions, Settings};

use crate::dataset::{KIND, edge};
use crate::random::Random;
use crate::survey::{Pair, Users};

const USERS: Users = Users { first: 1, last: 20_000 };
const EDGES: usize = 200_000;
const CHECKS: usize = 100_000;

/// Makes the graph in a missing folder; checks it in an existing one.
#[derive(Clone, Debug, Args)]
pub struct ProbeCheck {
    /// The folder of the graph
    store: PathBuf,
}

impl ProbeCheck {
    pub fn run(&self) -> Result<()> {
        if Embedded::exists(&self.store) { self.check() } else { self.create() }
    }

    fn create(&self) -> Result<()> {
        let store = Embedded::create(&self.store, IdKind::Integer, Settings::default())?;
        let mut import = store.import(&ImportOptions {
            kind: KIND,
            following_limit: None,
            fingerprint: "probe-check".to_owned(),
            sort_memory: 64 << 20,
        })?;
        for pair in graph() {
            import.push(edge(pair), None)?;
        }
        import.finish(&|_| {})?;
        Ok(store.close()?)
    }

    fn check(&self) -> Result<()> {
        // The system's clock as it is: the guarded one reads the kernel's own page, which is not there under valgrind.
        let clock = Arc::new(SystemClock);
        let store = Embedded::open_with_clock(&self.store, Settings::default(), clock)?;
        let existing = graph();
        let mut random = Random::new(12);
        let pairs: Vec<Pair> = (0..CHECKS)
            .map(|at| if at % 2 == 0 { random.pick(&existing) } else { USERS.random_pair(&mut random) })
            .collect();
        let yes = measured_checks(&store, &pairs);
        ensure!(yes >= CHECKS / 2, "only {yes} of {CHECKS} checks found an edge");
        println!("checks={CHECKS}");
        Ok(store.close()?)
    }
}

/// Edges between users at random: no user is checked so often that its place in a hash table decides.
fn graph() -> Vec<Pair> {
    let mut random = Random::new(11);
    (0..EDGES).map(|_| USERS.random_pair(&mut random)).collect()
}

/// What callgrind counts; it finds this function by its name.
#[inline(never)]
fn measured_checks(store: &Embedded, pairs: &[Pair]) -> usize {
    pairs.iter().filter(|&&pair| black_box(store.follows(KIND, edge(black_box(pair))))).count()
}
