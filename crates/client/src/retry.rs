//! When and how often a request is sent again. A request that may have been applied is repeated only if that is safe.

use std::time::Duration;

use kinfolk_core::ErrorCode;

use crate::Error;

/// How failed requests are repeated.
///
/// Attempts wait for an exponentially growing, randomised time, or as long as the server asks with `Retry-After`. A request is
/// given up when the server asks for more than [`Retry::wait_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The largest number of attempts; 1 for no retries.
    pub attempts_max: u32,
    /// About how long to wait before the second attempt. The time doubles with each further one.
    pub wait_first: Duration,
    /// The longest wait between two attempts.
    pub wait_max: Duration,
}

impl Retry {
    /// No retries.
    pub const NEVER: Self = Self { attempts_max: 1, wait_first: Duration::ZERO, wait_max: Duration::ZERO };
}

/// Four attempts within about two seconds, unless the server asks for more time.
impl Default for Retry {
    fn default() -> Self {
        Self { attempts_max: 4, wait_first: Duration::from_millis(100), wait_max: Duration::from_secs(5) }
    }
}

/// Whether a request may be sent again after it may have been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Applying it twice is the same as applying it once.
    Idempotent,
    /// Only if it was certainly not applied.
    OnlyUnapplied,
}

impl Retry {
    /// How long to wait before the next attempt; nothing if there must not be one.
    pub(crate) fn wait(&self, attempt: u32, repeat: Repeat, error: &Error) -> Option<Duration> {
        if attempt >= self.attempts_max || !may_repeat(repeat, error) {
            return None;
        }
        let asked = match error {
            Error::Refused(refusal) => refusal.retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        if asked > self.wait_max {
            return None;
        }
        let doubled = self.wait_first.saturating_mul(1 << (attempt - 1).min(16));
        Some(jittered(doubled).max(asked).min(self.wait_max))
    }
}

fn may_repeat(repeat: Repeat, error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Connection { .. } => repeat == Repeat::Idempotent,
        Error::Refused(refusal) => match refusal.problem.code() {
            Some(ErrorCode::RateLimited | ErrorCode::Overloaded | ErrorCode::Loading) => true,
            _ => repeat == Repeat::Idempotent && matches!(refusal.problem.status, 502..=504),
        },
        _ => false,
    }
}

/// Between half of a duration and all of it, so that clients that failed together do not come back together.
fn jittered(duration: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    duration / 2 + duration.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use kinfolk_api::Problem;

    use super::*;

    fn refused(code: ErrorCode, seconds: Option<u64>) -> Error {
        let problem = Problem::new(code, String::new(), String::new());
        Error::refused(problem, seconds.map(Duration::from_secs))
    }

    fn connection() -> Error {
        Error::Connection { url: String::new(), reason: "reset".to_owned() }
    }

    #[test]
    fn only_idempotent_requests_are_repeated_when_they_may_have_been_applied() {
        let retry = Retry::default();
        for error in [connection(), refused(ErrorCode::TimedOut, None), refused(ErrorCode::Unavailable, None)]
        {
            assert!(retry.wait(1, Repeat::Idempotent, &error).is_some(), "{error:?}");
            assert!(retry.wait(1, Repeat::OnlyUnapplied, &error).is_none(), "{error:?}");
        }
        for error in [Error::Unreachable { url: String::new() }, refused(ErrorCode::RateLimited, None)] {
            assert!(retry.wait(1, Repeat::OnlyUnapplied, &error).is_some(), "{error:?}");
        }
        for error in [refused(ErrorCode::SelfFollow, None), refused(ErrorCode::StorageFull, None)] {
            assert!(retry.wait(1, Repeat::Idempotent, &error).is_none(), "{error:?}");
        }
    }

    #[test]
    fn attempts_and_waits_are_bounded() {
        let retry = Retry::default();
        for attempt in 1..4 {
            let wait = retry.wait(attempt, Repeat::Idempotent, &connection()).unwrap();
            let most = retry.wait_first * (1 << (attempt - 1));
            assert!(wait >= most / 2 && wait <= most, "{attempt}: {wait:?}");
        }
        assert_eq!(retry.wait(4, Repeat::Idempotent, &connection()), None);
        assert_eq!(Retry::NEVER.wait(1, Repeat::Idempotent, &connection()), None);
        let wait =
            |seconds| retry.wait(1, Repeat::Idempotent, &refused(ErrorCode::RateLimited, Some(seconds)));
        assert_eq!(wait(3), Some(Duration::from_secs(3)));
        assert_eq!(wait(6), None);
    }
}
