//! Commands as bytes: finds the arguments of one command in what a client has sent. Copies and keeps nothing.
//!
//! A command is an array of bulk strings, or a line of text (an inline command), which [`super::inline`] reads. Replies
//! are written by [`super::reply`].

use kinfolk_core::Error;

use super::inline::parse_line;

/// Where one argument lies in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        // Settings keep frames far below 4 GiB, and a batch starts at the front of its buffer.
        Self { start: start as u32, end: end as u32 }
    }

    /// The argument, in the input that the span was found in.
    pub fn of(self, input: &[u8]) -> &[u8] {
        input.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// How many bytes it has.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// How large a command may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// All of it, in bytes.
    pub frame_bytes_max: usize,
    /// One argument, in bytes.
    pub bulk_bytes_max: usize,
    /// How many arguments, the name included.
    pub arguments_max: usize,
    /// A command in the form of a line, in bytes.
    pub inline_bytes_max: usize,
    /// Whether the caller is known.
    pub is_authenticated: bool,
}

impl FrameLimits {
    /// For callers who are known.
    pub const DEFAULT: Self = Self {
        frame_bytes_max: 4 << 20,
        bulk_bytes_max: 1 << 20,
        arguments_max: 16 << 10,
        inline_bytes_max: 64 << 10,
        is_authenticated: true,
    };
    /// For callers who have not said who they are: enough for credentials, as Redis has it.
    pub const UNAUTHENTICATED: Self = Self {
        frame_bytes_max: 64 << 10,
        bulk_bytes_max: 16 << 10,
        arguments_max: 10,
        inline_bytes_max: 16 << 10,
        is_authenticated: false,
    };

    /// The refusal of a command with too many arguments.
    pub(super) fn too_many_arguments(&self) -> Malformed {
        let max = self.arguments_max;
        if self.is_authenticated {
            Malformed::Arguments { max }
        } else {
            Malformed::UnauthenticatedArguments { max }
        }
    }

    /// The refusal of an argument that is too long.
    fn too_long_argument(&self) -> Malformed {
        let max = self.bulk_bytes_max;
        if self.is_authenticated { Malformed::Bulk { max } } else { Malformed::UnauthenticatedBulk { max } }
    }
}

/// What the input starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole command, which ends at this position. It may have no arguments: then there is nothing to do.
    Command {
        /// Where it ends.
        end: usize,
    },
    /// Part of a command.
    Incomplete {
        /// It can't be whole before the input is so long.
        needed: usize,
    },
}

/// Why input is not a command and never will be. The first words are those of Redis, which clients and tests look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A number of arguments that is not a number.
    #[error("Protocol error: invalid multibulk length, expected a decimal number and a line break")]
    Count,
    /// A length of an argument that is not a number.
    #[error("Protocol error: invalid bulk length, expected a decimal number and a line break")]
    Length,
    /// An argument of another type than a bulk string.
    #[error("Protocol error: expected '$', got '{}', the arguments of a command are bulk strings", got.escape_ascii())]
    NotBulk {
        /// The byte in its place.
        got: u8,
    },
    /// An argument that is longer or shorter than it says.
    #[error("Protocol error: a bulk string does not end where its length says")]
    Unterminated,
    /// A browser, which any web page can make send lines to this machine.
    #[error("Protocol error: this is the Redis protocol, not HTTP")]
    Http,
    /// A client that begins with a TLS handshake.
    #[error("Protocol error: this port does not use TLS")]
    Tls,
    /// Bytes that are no command in either form.
    #[error(
        "Protocol error: a command is an array of bulk strings, or a line of text that begins with the command's name"
    )]
    NotACommand,
    /// A quote without its counterpart, or text right after it.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// Too many arguments.
    #[error("Protocol error: invalid multibulk length, a command has at most {max} arguments")]
    Arguments {
        /// How many are allowed.
        max: usize,
    },
    /// Too many arguments of a caller who is not known.
    #[error(
        "Protocol error: unauthenticated multibulk length, a command has at most {max} arguments before AUTH"
    )]
    UnauthenticatedArguments {
        /// How many are allowed.
        max: usize,
    },
    /// An argument that is too long.
    #[error("Protocol error: invalid bulk length, an argument has at most {max} bytes")]
    Bulk {
        /// How many bytes are allowed.
        max: usize,
    },
    /// An argument that is too long, of a caller who is not known.
    #[error("Protocol error: unauthenticated bulk length, an argument has at most {max} bytes before AUTH")]
    UnauthenticatedBulk {
        /// How many bytes are allowed.
        max: usize,
    },
    /// A line that is too long.
    #[error("Protocol error: too big inline request, a line has at most {max} bytes here")]
    Inline {
        /// How many bytes are allowed.
        max: usize,
    },
    /// A command that is too long.
    #[error("Protocol error: too big request, a command has at most {max} bytes here")]
    Frame {
        /// How many bytes are allowed.
        max: usize,
    },
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::InvalidRequest { detail: malformed.to_string() }
    }
}

/// The shortest argument: `$0`, a line break, nothing, a line break.
const ARGUMENT_BYTES_MIN: usize = 6;

/// Finds the command that starts at `at` and appends the positions of its arguments to `spans`.
///
/// Unless there is a whole command, `spans` stays as it was. The arguments of a line are unescaped in the input, so a
/// command is parsed once.
///
/// # Errors
/// If no further input can make it a command, or it is larger than is allowed.
pub fn parse(
    input: &mut [u8],
    at: usize,
    limits: &FrameLimits,
    spans: &mut Vec<Span>,
) -> Result<Parsed, Malformed> {
    let before = spans.len();
    let parsed = match input.get(at) {
        None => Ok(Parsed::Incomplete { needed: at + 1 }),
        Some(b'*') => parse_array(input, at, limits, spans),
        Some(_) => parse_line(input, at, limits, spans),
    };
    if !matches!(parsed, Ok(Parsed::Command { .. })) {
        spans.truncate(before);
    }
    parsed
}

fn parse_array(
    input: &[u8],
    start: usize,
    limits: &FrameLimits,
    spans: &mut Vec<Span>,
) -> Result<Parsed, Malformed> {
    // What is missing is announced by lengths, so a command that would be too large is refused before it arrives.
    let incomplete = |needed: usize| {
        if needed - start > limits.frame_bytes_max {
            return Err(Malformed::Frame { max: limits.frame_bytes_max });
        }
        Ok(Parsed::Incomplete { needed })
    };
    let (count, mut at) = match parse_length(input, start + 1).map_err(|NotANumber| Malformed::Count)? {
        Some(Length { negative: true, next, .. }) => return Ok(Parsed::Command { end: next }),
        Some(Length { value, next, .. }) => (value, next),
        None => return incomplete(input.len() + 1),
    };
    if count > limits.arguments_max {
        return Err(limits.too_many_arguments());
    }
    for left in (0..count).rev() {
        match input.get(at) {
            Some(b'$') => {}
            Some(&got) => return Err(Malformed::NotBulk { got }),
            None => return incomplete(at + (left + 1) * ARGUMENT_BYTES_MIN),
        }
        let (length, body) = match parse_length(input, at + 1).map_err(|NotANumber| Malformed::Length)? {
            Some(Length { negative: true, .. }) => return Err(Malformed::Length),
            Some(Length { value, next, .. }) => (value, next),
            None => return incomplete(input.len() + 1 + left * ARGUMENT_BYTES_MIN),
        };
        if length > limits.bulk_bytes_max {
            return Err(limits.too_long_argument());
        }
        let end = body + length;
        match input.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Err(Malformed::Unterminated),
            None => return incomplete(end + 2 + left * ARGUMENT_BYTES_MIN),
        }
        spans.push(Span::new(body, end));
        at = end + 2;
    }
    if at - start > limits.frame_bytes_max {
        return Err(Malformed::Frame { max: limits.frame_bytes_max });
    }
    Ok(Parsed::Command { end: at })
}

/// A count or length, and where the line after it starts.
struct Length {
    value: usize,
    negative: bool,
    next: usize,
}

/// There is something else than a number.
struct NotANumber;

/// Reads a number up to its line break, or nothing if the line break has not arrived.
fn parse_length(input: &[u8], at: usize) -> Result<Option<Length>, NotANumber> {
    // No length that is allowed needs more digits, and no product of so many overflows.
    const DIGITS_MAX: usize = 18;
    let negative = input.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let mut value = 0;
    for digits in 0..=DIGITS_MAX {
        match input.get(first + digits) {
            None => return Ok(None),
            Some(byte @ b'0'..=b'9') if digits < DIGITS_MAX => value = value * 10 + usize::from(byte - b'0'),
            Some(b'\r') if digits > 0 => {
                return match input.get(first + digits + 1) {
                    None => Ok(None),
                    Some(b'\n') => Ok(Some(Length { value, negative, next: first + digits + 2 })),
                    Some(_) => Err(NotANumber),
                };
            }
            Some(_) => return Err(NotANumber),
        }
    }
    Err(NotANumber)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use redis_protocol::resp2::encode;
    use redis_protocol::resp2::types::{OwnedFrame, Resp2Frame};

    use super::*;

    const LIMITS: FrameLimits = FrameLimits::DEFAULT;

    /// The arguments of a whole command, and where it ends.
    pub(in super::super) type Whole = (Vec<Vec<u8>>, usize);

    pub(in super::super) fn parsed(input: &[u8], limits: &FrameLimits) -> Result<Option<Whole>, Malformed> {
        let (mut input, mut spans) = (input.to_vec(), Vec::new());
        Ok(match parse(&mut input, 0, limits, &mut spans)? {
            Parsed::Command { end } => {
                Some((spans.iter().map(|span| span.of(&input).to_vec()).collect(), end))
            }
            Parsed::Incomplete { needed } => {
                assert!(needed > input.len(), "{needed} bytes are already there");
                assert!(spans.is_empty());
                None
            }
        })
    }

    pub(in super::super) fn refusal(input: &[u8]) -> Malformed {
        parsed(input, &LIMITS).unwrap_err()
    }

    proptest! {
        /// What another implementation encodes is read, whole as soon as it is whole and not before.
        #[test]
        fn reads_what_others_write(
            arguments in vec(vec(any::<u8>(), 0..40), 1..12),
            behind in vec(any::<u8>(), 0..8),
        ) {
            let frame = OwnedFrame::Array(arguments.iter().cloned().map(OwnedFrame::BulkString).collect());
            let mut bytes = vec![0; frame.encode_len(false)];
            encode::encode(&mut bytes, &frame, false).unwrap();
            for end in 0..bytes.len() {
                let mut spans = Vec::new();
                match parse(&mut bytes[..end], 0, &LIMITS, &mut spans).unwrap() {
                    Parsed::Incomplete { needed } => {
                        prop_assert!(needed > end && needed <= bytes.len(), "{needed} of {}", bytes.len());
                    }
                    Parsed::Command { .. } => prop_assert!(false, "{end} of {} bytes", bytes.len()),
                }
            }
            let length = bytes.len();
            bytes.extend(behind);
            prop_assert_eq!(parsed(&bytes, &LIMITS).unwrap(), Some((arguments, length)));
        }

        /// Nothing that is sent makes it panic, read past the input, or allocate more than the input's size.
        #[test]
        fn survives_anything(
            mut input in vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'-'), b'0'..=b'3', any::<u8>()], 0..80),
        ) {
            let mut spans = Vec::new();
            if let Ok(Parsed::Command { end }) = parse(&mut input, 0, &LIMITS, &mut spans) {
                prop_assert!(end <= input.len());
                prop_assert!(spans.iter().map(|span| span.len()).sum::<usize>() <= end);
            }
            prop_assert!(spans.len() <= input.len());
        }
    }

    #[test]
    fn no_arguments_are_nothing_to_do() {
        for input in [&b"*0\r\n"[..], b"*-1\r\n"] {
            assert_eq!(parsed(input, &LIMITS).unwrap(), Some((Vec::new(), input.len())));
        }
    }

    #[test]
    fn what_can_never_be_a_command_is_refused_at_once() {
        for input in ["*x\r\n", "*1x", "*\r\n", "*1\rx", "*9999999999999999999999\r\n"] {
            assert_eq!(refusal(input.as_bytes()), Malformed::Count, "{input:?}");
        }
        for input in ["*1\r\n$x", "*1\r\n$-1\r\n", "*1\r\n$1\n", "*1\r\n$9999999999999999999999\r\n"] {
            assert_eq!(refusal(input.as_bytes()), Malformed::Length, "{input:?}");
        }
        for (input, got) in
            [("*1\r\n:1\r\n", b':'), ("*1\r\n*1\r\n", b'*'), ("*2\r\n$1\r\na\r\n+b\r\n", b'+')]
        {
            assert_eq!(refusal(input.as_bytes()), Malformed::NotBulk { got }, "{input:?}");
        }
        assert_eq!(refusal(b"*1\r\n$1\r\nab\r\n"), Malformed::Unterminated);
    }

    #[test]
    fn announced_sizes_are_refused_before_they_arrive() {
        assert_eq!(refusal(b"*16385\r\n"), Malformed::Arguments { max: 16_384 });
        assert_eq!(refusal(b"*1\r\n$1048577\r\n"), Malformed::Bulk { max: 1 << 20 });
        assert_eq!(refusal(b"*1\r\n$999999999999\r\n"), Malformed::Bulk { max: 1 << 20 });
        let limits = FrameLimits { frame_bytes_max: 100, ..LIMITS };
        let refused = parsed(b"*2\r\n$50\r\n", &limits);
        assert_eq!(refused, Ok(None));
        let refused = parsed(b"*10\r\n$50\r\n", &limits);
        assert_eq!(refused, Err(Malformed::Frame { max: 100 }));
        let limits = FrameLimits::UNAUTHENTICATED;
        assert_eq!(parsed(b"*11\r\n", &limits), Err(Malformed::UnauthenticatedArguments { max: 10 }));
        let refused = parsed(b"*1\r\n$16385\r\n", &limits);
        assert_eq!(refused, Err(Malformed::UnauthenticatedBulk { max: 16_384 }));
    }

    #[test]
    fn errors_begin_with_the_words_of_redis() {
        for (malformed, words) in [
            (Malformed::Count, "Protocol error: invalid multibulk length"),
            (Malformed::Length, "Protocol error: invalid bulk length"),
            (Malformed::NotBulk { got: b'f' }, "Protocol error: expected '$', got 'f'"),
            (Malformed::Quotes, "Protocol error: unbalanced quotes in request"),
            (Malformed::Inline { max: 1 }, "Protocol error: too big inline request"),
            (
                Malformed::UnauthenticatedArguments { max: 1 },
                "Protocol error: unauthenticated multibulk length",
            ),
            (Malformed::UnauthenticatedBulk { max: 1 }, "Protocol error: unauthenticated bulk length"),
        ] {
            assert!(malformed.to_string().starts_with(words), "{malformed}");
        }
    }
}
