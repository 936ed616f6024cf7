//! Milliseconds since 1970, printed and read as RFC 3339 in UTC. Not a source of time: see [`crate::Clock`].

use std::fmt;

/// A moment in milliseconds since 1970-01-01T00:00:00Z, between then and the end of the year 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

const MILLIS_PER_DAY: u64 = 86_400_000;

impl Timestamp {
    /// 1970-01-01T00:00:00.000Z.
    pub const MIN: Self = Self(0);
    /// 9999-12-31T23:59:59.999Z: the last moment that RFC 3339 can write.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// A moment by its milliseconds; anything past the year 9999 becomes the last moment of it.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis.min(Self::MAX.0))
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// This moment and some milliseconds more.
    pub fn plus_millis(self, millis: u64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Reads RFC 3339 (any offset, up to nanoseconds, truncated) or plain Unix milliseconds.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().filter(|&millis| millis <= Self::MAX.0).map(Self);
        }
        parse_rfc3339(text.as_bytes())
    }
}

fn parse_rfc3339(text: &[u8]) -> Option<Timestamp> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    };
    let is = |at: usize, allowed: &[u8]| text.get(at).is_some_and(|byte| allowed.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let punctuated = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    // A leap second is read as the second before it.
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !punctuated || !in_range {
        return None;
    }

    let mut at = 19;
    let mut fraction_millis = 0;
    if is(at, b".") {
        let digits = text.get(at + 1..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return None;
        }
        let kept = digits.min(3);
        fraction_millis = number(at + 1, at + 1 + kept)? * [100, 10, 1][kept - 1];
        at += 1 + digits;
    }
    let offset_minutes = if is(at, b"Zz") && text.len() == at + 1 {
        0
    } else if is(at, b"+-") && is(at + 3, b":") && text.len() == at + 6 {
        let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
        if hours > 23 || minutes > 59 {
            return None;
        }
        (hours * 60 + minutes) * if is(at, b"-") { -1 } else { 1 }
    } else {
        return None;
    };

    let minutes = days_from_civil(year, month, day) * 1_440 + hour * 60 + minute - offset_minutes;
    let millis = (minutes * 60 + second.min(59)) * 1_000 + fraction_millis;
    u64::try_from(millis).ok().filter(|&millis| millis <= Timestamp::MAX.0).map(Timestamp)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar: whole 400-year eras of 146,097 days, with years
/// counted from March so that the leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`] for days from 1970 on.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0 / MILLIS_PER_DAY);
        let of_day = self.0 % MILLIS_PER_DAY;
        write!(
            out,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            of_day / 3_600_000,
            of_day / 60_000 % 60,
            of_day / 1_000 % 60,
            of_day % 1_000
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-11-15T08:00:00.000Z", 1_794_729_600_000),
            ("9999-12-31T23:59:59.999Z", Timestamp::MAX.millis()),
        ] {
            assert_eq!(Timestamp::parse(text).map(Timestamp::millis), Some(millis), "{text}");
            assert_eq!(Timestamp(millis).to_string(), text);
        }
    }

    #[test]
    fn other_spellings() {
        let moment = Timestamp::parse("2026-11-15T08:00:00.120Z");
        assert!(moment.is_some());
        for text in [
            "2026-11-15T08:00:00.12Z",
            "2026-11-15t08:00:00.120999z",
            "2026-11-15 10:30:00.120+02:30",
            "2026-11-14T23:00:00.120-09:00",
            "1794729600120",
        ] {
            assert_eq!(Timestamp::parse(text), moment, "{text}");
        }
    }

    #[test]
    fn malformed_is_none() {
        for text in [
            "",
            "2026",
            "2026-11-15",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-15T24:00:00Z",
            "2026-11-15T08:00:00",
            "2026-11-15T08:00:00.Z",
            "2026-11-15T08:00:00+2:00",
            "1969-12-31T23:59:59Z",
            "2026-11-15T08:00:00Zx",
            "253402300800000",
            "99999999999999999999",
            "-1",
            "é026-11-15T08:00:00Z",
        ] {
            // Plain digits are Unix milliseconds, so "2026" is a moment in 1970.
            assert_eq!(Timestamp::parse(text).is_some(), text == "2026", "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(millis in 0..=Timestamp::MAX.millis()) {
            let moment = Timestamp::from_millis(millis);
            prop_assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
        }
    }
}
