//! Patterns as Redis has them: `*`, `?`, `[a-z]`, `[^a]` and `\` before a character that means itself.

use kinfolk_core::{Error, Result};

/// The longest pattern. Nothing that is matched is longer than a UUID, and matching takes as long as both together.
const PATTERN_BYTES_MAX: usize = 128;

/// A pattern that is short enough to be matched many times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern<'a>(&'a [u8]);

impl<'a> Pattern<'a> {
    pub(crate) fn new(pattern: &'a [u8]) -> Result<Self> {
        if pattern.len() > PATTERN_BYTES_MAX {
            let detail = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes");
            return Err(Error::InvalidRequest { detail });
        }
        Ok(Self(pattern))
    }

    /// Whether the whole text fits.
    pub(crate) fn matches(self, text: &[u8]) -> bool {
        matches(self.0, text)
    }
}

/// Whether the whole text fits the pattern. Takes at most as many steps as both lengths multiplied.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to go on after the last star, if what follows it does not fit where it was tried.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let here = pattern.get(at..).unwrap_or_default();
        if here.first() == Some(&b'*') {
            at += 1;
            retry = Some((at, read));
            continue;
        }
        match text.get(read) {
            None if here.is_empty() => return true,
            None => return false,
            Some(&byte) => {
                if let Some(length) = fits(here, byte) {
                    at += length;
                    read += 1;
                    continue;
                }
            }
        }
        let Some((after_star, from)) = retry else { return false };
        at = after_star;
        read = from + 1;
        retry = Some((after_star, read));
    }
}

/// How long the pattern's first element is, if it fits the byte.
fn fits(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (escaped == byte).then_some(2),
        [b'[', ref class @ ..] => class_fits(class, byte).map(|length| length + 1),
        [plain, ..] => (plain == byte).then_some(1),
    }
}

fn class_fits(class: &[u8], byte: u8) -> Option<usize> {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    // A class without its end goes to the end of the pattern.
    while let Some(&first) = class.get(at) {
        match (first, class.get(at + 1), class.get(at + 2)) {
            (b']', ..) => break,
            (b'\\', Some(&escaped), _) => {
                found |= escaped == byte;
                at += 2;
            }
            (low, Some(b'-'), Some(&high)) if high != b']' => {
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            (plain, ..) => {
                found |= plain == byte;
                at += 1;
            }
        }
    }
    (found != negated).then(|| (at + 1).min(class.len()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn fits_and_does_not() {
        for (pattern, text) in [
            ("*", ""),
            ("", ""),
            ("12*", "123"),
            ("*3", "1233"),
            ("1*2*3", "1002003"),
            ("?2?", "123"),
            ("[12]x[a-c]", "2xb"),
            ("[^1]", "2"),
            ("\\*", "*"),
            ("[c-a]", "b"),
            ("[ab", "a"),
        ] {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "1"),
            ("12*", "132"),
            ("*3", "1234"),
            ("?", ""),
            ("[^1]", "1"),
            ("\\*", "1"),
            ("1", "11"),
            ("[]", "a"),
        ] {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        assert!(!matches("*a".repeat(500).as_bytes(), "a".repeat(499).as_bytes()));
        assert!(!matches("*a*b".repeat(200).as_bytes(), "a".repeat(10_000).as_bytes()));
    }
}
