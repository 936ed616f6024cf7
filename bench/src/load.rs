//! Durable follows from one thread: a fixed number outstanding, or a fixed rate whatever the store does.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kinfolk_core::Error;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeStore, FollowerCommand, GraphSettings, WriteRequest};
use kinfolk_embedded::Embedded;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::dataset::{KIND, edge};
use crate::histogram::Histogram;
use crate::random::Random;
use crate::survey::{Pair, Users};

/// More writes than this waiting mean that the store does not keep up with the rate.
const WAITING_MAX: u64 = 100_000;

/// What a load of follows measured.
#[derive(Debug, Default)]
pub struct Follows {
    pub latency: Histogram,
    /// Follows that made an edge.
    pub made: u64,
    pub elapsed: Duration,
    failure: Option<Error>,
    waiting: u64,
}

impl Follows {
    pub fn per_second(&self) -> f64 {
        self.made as f64 / self.elapsed.as_secs_f64()
    }
}

/// Keeps `outstanding` follows of random pairs in flight for a time.
pub fn closed_loop(
    store: &Embedded,
    users: Users,
    outstanding: u64,
    time: Duration,
    seed: u64,
) -> Result<Follows> {
    let follows = Rc::new(RefCell::new(Follows::default()));
    let random = Rc::new(RefCell::new(Random::new(seed)));
    let tasks = LocalSet::new();
    let started = Instant::now();
    for _ in 0..outstanding {
        let (follows, random) = (Rc::clone(&follows), Rc::clone(&random));
        let store = store.clone();
        tasks.spawn_local(async move {
            while started.elapsed() < time && follows.borrow().failure.is_none() {
                let pair = users.random_pair(&mut random.borrow_mut());
                follow(&store, pair, &follows).await;
            }
        });
    }
    runtime()?.block_on(tasks);
    finished(follows, started)
}

/// Starts `rate` follows of random pairs a second for a time, however many are waiting.
pub fn open_loop(store: &Embedded, users: Users, rate: u64, time: Duration, seed: u64) -> Result<Follows> {
    let follows = Rc::new(RefCell::new(Follows::default()));
    let started = Instant::now();
    let tasks = LocalSet::new();
    let pace = tasks.run_until(async {
        let mut random = Random::new(seed);
        let mut issued = 0;
        let mut tick = tokio::time::interval(Duration::from_millis(1));
        while started.elapsed() < time {
            tick.tick().await;
            let due = (started.elapsed().min(time).as_secs_f64() * rate as f64) as u64;
            while issued < due {
                issued += 1;
                let pair = users.random_pair(&mut random);
                let (store, follows) = (store.clone(), Rc::clone(&follows));
                tokio::task::spawn_local(async move { follow(&store, pair, &follows).await });
            }
            let state = follows.borrow();
            if state.failure.is_some() || state.waiting > WAITING_MAX {
                break;
            }
        }
    });
    let runtime = runtime()?;
    runtime.block_on(pace);
    if follows.borrow().waiting > WAITING_MAX {
        bail!("the store did not keep up with {rate} follows a second");
    }
    runtime.block_on(tasks);
    finished(follows, started)
}

async fn follow(store: &Embedded, pair: Pair, follows: &RefCell<Follows>) {
    let Edge { follower, followee } = edge(pair);
    let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee }];
    let following_limit = GraphSettings::default().following_limit;
    let request = WriteRequest { kind: KIND, follower, commands: commands.into(), following_limit };
    follows.borrow_mut().waiting += 1;
    let started = Instant::now();
    let answer = store.write_one(request).await;
    let latency = started.elapsed();
    let mut follows = follows.borrow_mut();
    follows.waiting -= 1;
    match answer {
        Ok(receipt) => {
            follows.latency.record(latency);
            follows.made += u64::from(receipt.changed[..] == [true]);
        }
        // A generated account may follow as many as is allowed already.
        Err(Error::FollowingLimit { .. }) => {}
        Err(error) => follows.failure = Some(error),
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_time().build()?)
}

fn finished(follows: Rc<RefCell<Follows>>, started: Instant) -> Result<Follows> {
    let mut follows = Rc::into_inner(follows).context("a follow is still under way")?.into_inner();
    follows.elapsed = started.elapsed();
    match follows.failure.take() {
        Some(error) => Err(error.into()),
        None => Ok(follows),
    }
}
