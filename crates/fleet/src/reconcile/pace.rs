//! How fast rows are compared: so many in a second, on average.

use std::time::Duration;

use tokio::time::Instant;

pub(super) struct Pace {
    rows_per_second: u32,
    /// Before this moment nothing more is compared.
    next: Instant,
}

impl Pace {
    pub(super) fn new(rows_per_second: u32) -> Self {
        Self { rows_per_second, next: Instant::now() }
    }

    /// Notes that so many rows were compared. Time in which nothing was compared is not made up for.
    pub(super) fn spend(&mut self, rows: u64) {
        let took = Duration::from_secs_f64(rows as f64 / f64::from(self.rows_per_second));
        self.next = self.next.max(Instant::now()) + took;
    }

    /// How long to wait from now on.
    pub(super) fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_second_has_more_rows_than_allowed() {
        let mut pace = Pace::new(200);
        let begun = Instant::now();
        for _ in 0..10 {
            pace.spend(100);
            tokio::time::sleep(pace.wait()).await;
        }
        assert_eq!(begun.elapsed().as_secs(), 5);
        tokio::time::sleep(Duration::from_secs(60)).await;
        pace.spend(100);
        assert_eq!(pace.wait(), Duration::from_millis(500), "a pause saves nothing up");
    }
}
