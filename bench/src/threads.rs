//! What `comments` measures of threads that nobody else uses: the same in a short thread and in a long one of one store.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kinfolk_core::Frontier;
use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentOrder, CommentStore, NewComment, Parent, Withdrawal,
};
use kinfolk_embedded::Embedded;

use crate::commenting::{Commenter, PAGE, first_page, walk, write_all};
use crate::dataset::disk_bytes;
use crate::histogram::Histogram;
use crate::measurement::Recorder;
use crate::posting::runtime;
use crate::random::Random;

/// How many comments a short thread has.
const SHORT: u64 = 10;
/// One comment goes to a short thread for so many that go to the long one.
const LONG_FOR_EACH_SHORT: u64 = 100;
/// The long thread has a multiple of this many, which makes all short threads equal.
pub const STEP: u64 = SHORT * LONG_FOR_EACH_SHORT;
const APPENDS: usize = 1_000;
const PAGES: usize = 10_000;
const EDITS: usize = 1_000;
const PURGES: usize = 10;

/// One long thread, and many short ones that were written at the same time.
pub struct Threads {
    long: Parent,
    short: Parent,
    /// As many comments as a page.
    middle: Parent,
    /// As many from all parts of the long thread as there are in short ones.
    long_ids: Vec<CommentId>,
    short_ids: Vec<CommentId>,
    /// Nothing is done more often in a round, so that a small run is quick.
    turns_max: usize,
}

impl Threads {
    /// Fills the threads, and records how fast that was and what they take on disk.
    pub fn fill(
        (store, folder): (&Embedded, &Path),
        comments: u64,
        commenter: &mut Commenter,
        recorder: &mut Recorder,
    ) -> Result<Self> {
        eprintln!("writing {comments} comments");
        let long = commenter.comment_thread(store, 0)?;
        let shorts: Vec<Parent> =
            (0..comments / STEP).map(|_| commenter.comment_thread(store, 0)).collect::<Result<_>>()?;
        store.compact()?;
        let rows = folder.join("comments");
        let before = (disk_bytes(folder)?, disk_bytes(&rows)?);
        let started = Instant::now();
        write_all(store, mixed(long, shorts.clone(), comments, commenter.fork()))?;
        let written = comments as f64 * (1.0 + 1.0 / LONG_FOR_EACH_SHORT as f64);
        recorder.record("fill", written / started.elapsed().as_secs_f64());
        store.compact()?;
        let growth = |bytes: u64, before: u64| (bytes as f64 - before as f64) / written;
        recorder.record("disk", growth(disk_bytes(folder)?, before.0));
        recorder.record("disk_rows", growth(disk_bytes(&rows)?, before.1));

        let mut short_ids = Vec::new();
        for &short in &shorts {
            short_ids.extend(walk(store, short, SHORT)?);
        }
        let long_ids = walk(store, long, comments)?;
        let long_ids = long_ids.into_iter().step_by(LONG_FOR_EACH_SHORT as usize).collect();
        let short = shorts.get(shorts.len() / 2).copied().context("there are short threads")?;
        let middle = commenter.comment_thread(store, PAGE)?;
        Ok(Self { long, short, middle, long_ids, short_ids, turns_max: (comments / SHORT) as usize })
    }

    /// Everything once, short and long alternately.
    pub fn measure(
        &mut self,
        store: &Embedded,
        commenter: &mut Commenter,
        recorder: &mut Recorder,
    ) -> Result<()> {
        store.compact()?;
        self.append(store, commenter, recorder)?;
        for (name, order) in [("oldest", CommentOrder::Oldest), ("newest", CommentOrder::Newest)] {
            let [ten, ten_of_long] = self.pages(store, (self.short, order), SHORT as usize)?;
            recorder.record(&format!("{name}_10_short"), ten.percentile_us(0.5));
            recorder.record(&format!("{name}_10_long"), ten_of_long.percentile_us(0.5));
            recorder.record(&format!("{name}_10_times"), times(&ten, &ten_of_long));
            let [page, page_of_long] = self.pages(store, (self.middle, order), PAGE)?;
            recorder.record_us(&format!("{name}_short"), &page);
            recorder.record_us(&format!("{name}_long"), &page_of_long);
            recorder.record(&format!("{name}_times"), times(&page, &page_of_long));
        }
        self.one(store, recorder)?;
        self.edit(store, commenter, recorder)?;
        self.erase(store, recorder)
    }

    /// Every ten comments a new short thread of ten is made, so that it has twice as many at most.
    fn append(&self, store: &Embedded, commenter: &mut Commenter, recorder: &mut Recorder) -> Result<()> {
        let runtime = runtime()?;
        let (mut short, mut long) = (Histogram::default(), Histogram::default());
        for _ in 0..APPENDS.min(self.turns_max) / SHORT as usize {
            let thread = commenter.comment_thread(store, SHORT as usize)?;
            for _ in 0..SHORT {
                short.record(runtime.block_on(append(store, commenter.new_comment(thread)))?);
                long.record(runtime.block_on(append(store, commenter.new_comment(self.long)))?);
            }
        }
        recorder.record_ms("append_short", &short);
        recorder.record_ms("append_long", &long);
        recorder.record("append_times", times(&short, &long));
        Ok(())
    }

    /// First pages of another thread and of the long one.
    fn pages(
        &self,
        store: &Embedded,
        (other, order): (Parent, CommentOrder),
        limit: usize,
    ) -> Result<[Histogram; 2]> {
        let mut histograms = [Histogram::default(), Histogram::default()];
        runtime()?.block_on(async {
            for _ in 0..PAGES.min(self.turns_max) {
                for (thread, histogram) in [other, self.long].into_iter().zip(&mut histograms) {
                    let started = Instant::now();
                    first_page(store, thread, order, limit).await?;
                    histogram.record(started.elapsed());
                }
            }
            anyhow::Ok(())
        })?;
        Ok(histograms)
    }

    fn one(&self, store: &Embedded, recorder: &mut Recorder) -> Result<()> {
        let mut random = Random::new(4);
        let mut histograms = [Histogram::default(), Histogram::default()];
        runtime()?.block_on(async {
            for _ in 0..PAGES.min(self.turns_max) {
                for (ids, histogram) in [&self.short_ids, &self.long_ids].into_iter().zip(&mut histograms) {
                    let id = random.pick(ids);
                    let started = Instant::now();
                    let found = store.comments(&[id], Frontier::EMPTY).await?;
                    histogram.record(started.elapsed());
                    if !matches!(found.as_slice(), [Some(comment)] if comment.id == id) {
                        bail!("comment {id} is not there");
                    }
                }
            }
            anyhow::Ok(())
        })?;
        let [short, long] = histograms;
        recorder.record_us("one_short", &short);
        recorder.record_us("one_long", &long);
        recorder.record("one_times", times(&short, &long));
        Ok(())
    }

    fn edit(&self, store: &Embedded, commenter: &mut Commenter, recorder: &mut Recorder) -> Result<()> {
        let mut random = Random::new(commenter.make_up().author);
        let mut latency = Histogram::default();
        runtime()?.block_on(async {
            for _ in 0..EDITS.min(self.turns_max) {
                let id = random.pick(&self.long_ids);
                let seen = store
                    .comments(&[id], Frontier::EMPTY)
                    .await?
                    .pop()
                    .flatten()
                    .context("the comment is there")?;
                let edit = CommentEdit { id, version: seen.version, body: commenter.body().into() };
                let started = Instant::now();
                store.edit_comment(edit).await?;
                latency.record(started.elapsed());
            }
            anyhow::Ok(())
        })?;
        recorder.record_ms("edit", &latency);
        Ok(())
    }

    /// Purges some of the comments, which are not read after that.
    fn erase(&mut self, store: &Embedded, recorder: &mut Recorder) -> Result<()> {
        Random::new(5).shuffle(&mut self.long_ids);
        let purged = self.long_ids.split_off(self.long_ids.len().saturating_sub(PURGES));
        let seconds = runtime()?.block_on(async {
            for &id in &purged {
                store.withdraw_comment(id, Withdrawal::Purge, None).await?;
            }
            let started = Instant::now();
            let erased = store.erase_purged().await?;
            if erased != purged.len() as u64 {
                bail!("{erased} comments were erased, not {}", purged.len());
            }
            Ok(started.elapsed().as_secs_f64())
        })?;
        recorder.record("erase", seconds);
        Ok(())
    }
}

/// How much longer it takes in the long thread.
fn times(short: &Histogram, long: &Histogram) -> f64 {
    long.percentile_ns(0.5) / short.percentile_ns(0.5)
}

async fn append(store: &Embedded, new: NewComment) -> Result<Duration> {
    let started = Instant::now();
    let commented = store.comment(new).await?;
    let elapsed = started.elapsed();
    if commented.is_new { Ok(elapsed) } else { bail!("comment {} was there before", commented.comment.id) }
}

/// The comments of all threads, those of short ones spread among those of the long one.
fn mixed(
    long: Parent,
    shorts: Vec<Parent>,
    comments: u64,
    mut commenter: Commenter,
) -> impl Iterator<Item = NewComment> {
    let mut turns = shorts.into_iter().cycle();
    let parents = (1..=comments).flat_map(move |number| {
        let short = number.is_multiple_of(LONG_FOR_EACH_SHORT).then(|| turns.next()).flatten();
        [Some(long), short].into_iter().flatten()
    });
    parents.map(move |parent| commenter.new_comment(parent))
}
