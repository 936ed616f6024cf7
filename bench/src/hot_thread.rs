//! What `comments` measures of a thread that everybody writes to and reads, in process and over REST.

use std::cell::RefCell;
use std::process;
use std::rc::Rc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use kinfolk_core::comments::{CommentOrder, CommentStore, Parent};
use kinfolk_embedded::Embedded;

use crate::client::Client;
use crate::commenting::{Commenter, MadeUp, PAGE, first_page};
use crate::histogram::Histogram;
use crate::measurement::Recorder;
use crate::pace::by_the_clock;
use crate::posting::{for_each, runtime};
use crate::server::{Server, cpu_seconds};

pub const WRITERS: usize = 16;
pub const READERS: u32 = 4;

/// What is done to the thread, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub time: Duration,
    /// How many first pages each reader asks for in a second.
    pub pages_a_reader: u32,
}

impl Load {
    /// How many pages all readers ask for in a second.
    pub fn pages(self) -> u32 {
        self.pages_a_reader * READERS
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Hot {
    pub comments: Histogram,
    pub pages: Histogram,
    /// How long was written, and how long read: longer where readers are behind at the end.
    pub elapsed: (Duration, Duration),
    /// Of the side that serves.
    pub cpu_seconds: f64,
}

impl Hot {
    pub fn per_second(&self) -> f64 {
        self.comments.total() as f64 / self.elapsed.0.as_secs_f64()
    }

    pub fn record(&self, recorder: &mut Recorder, key: &str) {
        recorder.record(key, self.per_second());
        recorder.record_ms(key, &self.comments);
        recorder.record(&format!("{key}_pages"), self.pages.total() as f64 / self.elapsed.1.as_secs_f64());
        recorder.record_ms(&format!("{key}_page"), &self.pages);
        let comments = self.comments.total().max(1);
        recorder.record(&format!("{key}_cpu"), self.cpu_seconds * 1e6 / comments as f64);
    }
}

/// Writes and reads at the same time. `read` is what one reader does, `write` what all writers do together.
pub fn at_once(
    readers: u32,
    read: impl Fn() -> Result<Histogram> + Sync,
    write: impl FnOnce() -> Result<Histogram>,
    cpu_seconds: impl Fn() -> Result<f64>,
) -> Result<Hot> {
    let (cpu, started) = (cpu_seconds()?, Instant::now());
    let (comments, written, pages) = thread::scope(|scope| {
        let readers: Vec<_> = (0..readers).map(|_| scope.spawn(&read)).collect();
        let comments = write();
        (comments, started.elapsed(), joined(readers))
    });
    let elapsed = (written, started.elapsed());
    Ok(Hot { comments: comments?, pages: pages?, elapsed, cpu_seconds: cpu_seconds()? - cpu })
}

fn joined(threads: Vec<ScopedJoinHandle<'_, Result<Histogram>>>) -> Result<Histogram> {
    let mut all = Histogram::default();
    for thread in threads {
        all.merge(&thread.join().map_err(|_| anyhow!("a client panicked"))??);
    }
    Ok(all)
}

/// Writers are so many comments under way, started by one thread.
pub fn in_process(store: &Embedded, parent: Parent, commenter: Commenter, load: Load) -> Result<Hot> {
    let read = || {
        let runtime = runtime()?;
        by_the_clock(load.time, load.pages_a_reader, || {
            runtime.block_on(first_page(store, parent, CommentOrder::Newest, PAGE)).map(drop)
        })
    };
    let write = || write_in_process(store, parent, commenter, load.time);
    at_once(READERS, read, write, || Ok(cpu_seconds(process::id())))
}

fn write_in_process(
    store: &Embedded,
    parent: Parent,
    mut commenter: Commenter,
    time: Duration,
) -> Result<Histogram> {
    let latency = Rc::new(RefCell::new(Histogram::default()));
    let begun = Instant::now();
    let until_then =
        std::iter::from_fn(move || (begun.elapsed() < time).then(|| commenter.new_comment(parent)));
    for_each(WRITERS, until_then, {
        let (store, latency) = (store.clone(), Rc::clone(&latency));
        move |new| {
            let (store, latency) = (store.clone(), Rc::clone(&latency));
            async move {
                let started = Instant::now();
                store.comment(new).await?;
                latency.borrow_mut().record(started.elapsed());
                Ok(())
            }
        }
    })?;
    Ok(Rc::into_inner(latency).context("a comment is still under way")?.into_inner())
}

/// Every writer and every reader has a connection.
pub fn over_rest(server: &Server, parent: Parent, mut commenter: Commenter, load: Load) -> Result<Hot> {
    let path = format!("/v1/posts/{}/comments", parent.id);
    let newest = format!("{path}?order=newest&limit={PAGE}");
    let read = || {
        let mut http = Client::connect(server.http)?;
        by_the_clock(load.time, load.pages_a_reader, || {
            let body = http.get(&newest, &server.key)?;
            // What a comment says is plain words, so this occurs once in each.
            let comments = body.windows(7).filter(|part| part == b"\"body\":").count();
            if comments == PAGE { Ok(()) } else { bail!("a page of {PAGE} comments has {comments}") }
        })
    };
    let writers: Vec<Commenter> = (0..WRITERS).map(|_| commenter.fork()).collect();
    let write = || {
        thread::scope(|scope| {
            let write = |commenter| write_over_rest(server, &path, commenter, load.time);
            joined(writers.into_iter().map(|commenter| scope.spawn(move || write(commenter))).collect())
        })
    };
    at_once(READERS, read, write, || Ok(cpu_seconds(server.process())))
}

fn write_over_rest(
    server: &Server,
    path: &str,
    mut commenter: Commenter,
    time: Duration,
) -> Result<Histogram> {
    let mut http = Client::connect(server.http)?;
    let mut latency = Histogram::default();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let MadeUp { author, key, body } = commenter.make_up();
        let headers = format!("Kinfolk-Actor: {author}\r\nIdempotency-Key: {key}\r\n");
        let json = format!(r#"{{"body":"{body}"}}"#);
        let started = Instant::now();
        http.post(path, &server.key, &headers, &json)?;
        latency.record(started.elapsed());
    }
    Ok(latency)
}
