//! The commands of one read: where each starts and ends in the input. Executes nothing.

use super::frame::{self, FrameLimits, Malformed, Parsed, Span};

/// Some commands, in order, by the positions of their arguments.
#[derive(Debug, Default)]
pub(super) struct Batch {
    spans: Vec<Span>,
    /// For each command, the end of its arguments in `spans`.
    ends: Vec<u32>,
}

/// Where a batch ends in the input, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub end: usize,
    pub ending: Ending,
}

/// Why a batch ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// There may be more in the input.
    Full,
    /// The rest is not a whole command before the input has this many bytes.
    Incomplete { needed: usize },
    /// The rest is not a command.
    Malformed(Malformed),
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a> {
    input: &'a [u8],
    spans: &'a [Span],
}

impl Batch {
    /// Takes up to `max` commands from the input, from `at` on.
    pub(crate) fn fill(&mut self, input: &mut [u8], at: usize, max: usize, limits: &FrameLimits) -> Filled {
        self.clear();
        let mut end = at;
        while self.ends.len() < max {
            match frame::parse(input, end, limits, &mut self.spans) {
                Ok(Parsed::Command { end: next }) => {
                    end = next;
                    self.ends.push(self.spans.len() as u32);
                }
                Ok(Parsed::Incomplete { needed }) => {
                    return Filled { end, ending: Ending::Incomplete { needed } };
                }
                Err(malformed) => return Filled { end, ending: Ending::Malformed(malformed) },
            }
        }
        Filled { end, ending: Ending::Full }
    }

    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.ends.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The command of that number.
    pub(crate) fn command<'a>(&'a self, number: usize, input: &'a [u8]) -> Arguments<'a> {
        let end = |number: usize| self.ends.get(number).map_or(0, |&end| end as usize);
        let start = number.checked_sub(1).map_or(0, end);
        Arguments { input, spans: self.spans.get(start..end(number)).unwrap_or_default() }
    }

    /// Appends one more command, whose arguments the caller appends to `input`.
    pub(crate) fn push_copy(&mut self, arguments: Arguments<'_>, input: &mut Vec<u8>) {
        for argument in arguments.iter() {
            let start = input.len();
            input.extend_from_slice(argument);
            self.spans.push(Span::new(start, input.len()));
        }
        self.ends.push(self.spans.len() as u32);
    }

    /// How many bytes of memory it holds on to.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.ends.capacity() * size_of::<u32>()
    }
}

impl<'a> Arguments<'a> {
    /// The argument of that number; the command's name is 0.
    pub(crate) fn get(self, number: usize) -> Option<&'a [u8]> {
        self.spans.get(number).map(|span| span.of(self.input))
    }

    /// How many, the name included.
    pub(crate) fn len(self) -> usize {
        self.spans.len()
    }

    /// How many bytes all of them have.
    pub(crate) fn bytes(self) -> usize {
        self.spans.iter().map(|span| span.len()).sum()
    }

    /// All of them.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.spans.iter().map(move |span| span.of(self.input))
    }

    /// All but the first `count`.
    pub(crate) fn skip(self, count: usize) -> Self {
        Self { spans: self.spans.get(count..).unwrap_or_default(), ..self }
    }
}
