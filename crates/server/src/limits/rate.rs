//! A rate as settings write it: `50/s`, `1000/h burst 400`. Counting is not done here.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kinfolk_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// The names of the periods that a rate may have, and their seconds.
const PERIODS: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];

/// So many in a period, and so many at once. Without a burst of its own, what is allowed in a period may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    count: u32,
    period_seconds: u64,
    burst: u32,
}

impl Rate {
    /// So many in a second.
    pub fn per_second(count: u32) -> Self {
        Self::new(count, 1)
    }

    /// So many in a minute.
    pub fn per_minute(count: u32) -> Self {
        Self::new(count, 60)
    }

    /// So many in an hour.
    pub fn per_hour(count: u32) -> Self {
        Self::new(count, 3_600)
    }

    fn new(count: u32, period_seconds: u64) -> Self {
        let count = count.max(1);
        Self { count, period_seconds, burst: count }
    }

    /// The same rate with another number that may come at once.
    pub fn with_burst(self, burst: u32) -> Self {
        Self { burst: burst.max(1), ..self }
    }

    /// How many may come at once.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// How long it takes until one more is allowed.
    pub fn interval(self) -> Duration {
        Duration::from_secs(self.period_seconds) / self.count
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::InvalidInput {
            detail: format!("{text:?} is not a rate: write such as 50/s, 3000/m or 1000/h burst 400"),
        };
        let positive = |text: &str| text.trim().parse::<u32>().ok().filter(|&count| count > 0);
        let (rate, burst) = match text.split_once("burst") {
            Some((rate, burst)) => (rate, Some(positive(burst).ok_or_else(invalid)?)),
            None => (text, None),
        };
        let (count, period) = rate.split_once('/').ok_or_else(invalid)?;
        let count = positive(count).ok_or_else(invalid)?;
        let (_, period_seconds) =
            PERIODS.into_iter().find(|(name, _)| *name == period.trim()).ok_or_else(invalid)?;
        let rate = Self::new(count, period_seconds);
        Ok(burst.map_or(rate, |burst| rate.with_burst(burst)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = PERIODS.iter().find(|(_, seconds)| *seconds == self.period_seconds);
        let (name, _) = period.expect("a rate has one of the periods");
        write!(out, "{}/{name}", self.count)?;
        if self.burst != self.count { write!(out, " burst {}", self.burst) } else { Ok(()) }
    }
}

impl TryFrom<String> for Rate {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for text in ["50/s", "3000/m", "1000/h burst 400", "1/d"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!(" 50 / s burst 7 ".parse::<Rate>().unwrap(), Rate::per_second(50).with_burst(7));
        assert_eq!(Rate::per_hour(1_000).interval(), Duration::from_millis(3_600));
    }

    #[test]
    fn what_is_not_a_rate_is_refused() {
        for text in ["", "50", "0/s", "-1/s", "50/week", "50/s burst", "50/s burst 0", "/s", "9999999999/s"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(error.to_string().contains("1000/h burst 400"), "{text}: {error}");
        }
    }
}
