//! The progress of long work, on stderr: a bar on a terminal, a line now and then elsewhere.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use kinfolk_core::bulk::Progress;

use crate::print::grouped;

/// The stage in which an import reads its files. Its progress is in bytes.
pub(crate) const READING: &str = "reading";

/// The stage in which suggestions are computed. Its progress is in users.
pub(crate) const SUGGESTING: &str = "suggesting";

/// The stages of a server's work.
const STAGES: [&str; 8] = [
    READING,
    SUGGESTING,
    "counting",
    "loading",
    "loading followers",
    "writing the index",
    "erasing",
    "compacting",
];

/// Displays progress. Reporting is cheap enough for every few thousand edges.
#[derive(Debug)]
pub(crate) struct Reporter {
    display: Display,
    stage: Cell<&'static str>,
}

#[derive(Debug)]
enum Display {
    Silent,
    Bar(RefCell<Option<ProgressBar>>),
    Lines { every: Duration, last: Cell<Option<Instant>> },
}

impl Reporter {
    /// A reporter that displays nothing.
    pub(crate) fn silent() -> Self {
        Self { display: Display::Silent, stage: Cell::new("") }
    }

    /// A bar if stderr is a terminal, otherwise a line at most once per `every`.
    pub(crate) fn new(every: Duration) -> Self {
        let display = if io::stderr().is_terminal() {
            Display::Bar(RefCell::new(None))
        } else {
            // The first line comes after the first interval, so that short work prints none.
            let last = if every.is_zero() { None } else { Some(Instant::now()) };
            Display::Lines { every, last: Cell::new(last) }
        };
        Self { display, stage: Cell::new("") }
    }

    /// Displays the progress of a server.
    pub(crate) fn report_remote(&self, progress: kinfolk_api::Progress) {
        let kinfolk_api::Progress { stage, done, total } = progress;
        // A newer server may have stages that this version does not know.
        let stage = STAGES.into_iter().find(|known| *known == stage).unwrap_or("working");
        self.report(Progress { stage, done, total });
    }

    /// Displays progress.
    pub(crate) fn report(&self, progress: Progress) {
        let stage_is_new = self.stage.replace(progress.stage) != progress.stage;
        match &self.display {
            Display::Silent => {}
            Display::Bar(bar) => {
                let mut bar = bar.borrow_mut();
                if stage_is_new && let Some(finished) = bar.take() {
                    finished.finish_and_clear();
                }
                bar.get_or_insert_with(|| new_bar(progress)).set_position(progress.done);
            }
            Display::Lines { every, last } => {
                let now = Instant::now();
                if last.get().is_none_or(|last| now.duration_since(last) >= *every) {
                    last.set(Some(now));
                    // A closed stderr must not stop the work.
                    let _ = writeln!(io::stderr(), "kinfolk: {}", describe(progress));
                }
            }
        }
    }

    /// Clears the bar, before anything else is printed.
    pub(crate) fn finish(&self) {
        if let Display::Bar(bar) = &self.display
            && let Some(bar) = bar.borrow_mut().take()
        {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A stream that reports how much of it was read.
pub(crate) struct ReadProgress<'a, R> {
    input: R,
    done: u64,
    total: Option<u64>,
    reporter: &'a Reporter,
}

impl<'a, R: Read> ReadProgress<'a, R> {
    /// `total` is the length of the stream, if it is known.
    pub(crate) fn new(input: R, total: Option<u64>, reporter: &'a Reporter) -> Self {
        Self { input, done: 0, total, reporter }
    }
}

impl<R: Read> Read for ReadProgress<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.done += count as u64;
        self.reporter.report(Progress { stage: READING, done: self.done, total: self.total });
        Ok(count)
    }
}

fn new_bar(progress: Progress) -> ProgressBar {
    let amounts = if progress.stage == READING {
        "{bytes} of {total_bytes}, {bytes_per_sec}"
    } else {
        "{human_pos} of {human_len}, {per_sec}"
    };
    let template = match progress.total {
        Some(_) => format!("{{msg}} [{{bar:30}}] {{percent}} % ({amounts}, {{eta}} left)"),
        None => "{msg} {spinner} {human_pos}".to_owned(),
    };
    let bar = progress.total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is constant and valid"));
    bar.set_message(progress.stage);
    bar
}

/// The plain line.
fn describe(progress: Progress) -> String {
    let Progress { stage, done, total } = progress;
    let amount = |amount: u64| {
        if stage == READING { format!("{:.1} MiB", amount as f64 / 1_048_576.0) } else { grouped(amount) }
    };
    match total {
        Some(total) if total > 0 => {
            let percent = (u128::from(done) * 100 / u128::from(total)).min(100);
            format!("{stage}: {} of {} ({percent} %)", amount(done), amount(total))
        }
        _ => format!("{stage}: {}", amount(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_stage_and_percentage() {
        for (stage, done, total, text) in [
            ("sorting", 1_500, Some(3_000), "sorting: 1,500 of 3,000 (50 %)"),
            ("sorting", 5, None, "sorting: 5"),
            ("sorting", 0, Some(0), "sorting: 0"),
            (READING, 1 << 20, Some(4 << 20), "reading: 1.0 MiB of 4.0 MiB (25 %)"),
        ] {
            assert_eq!(describe(Progress { stage, done, total }), text);
        }
    }
}
