//! Commands as bytes: finds the arguments of one command in what a client has sent. Copies and keeps nothing.
//!
//! A command is an array of bulk strings, or a line of text (an inline command, for people at a terminal). Replies
//! are written by [`super::reply`].

use std::ops::Range;

use kinfolk_core::Error;

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
}

impl FrameLimits {
    /// For callers who are known.
    pub const DEFAULT: Self = Self {
        frame_bytes_max: 4 << 20,
        bulk_bytes_max: 1 << 20,
        arguments_max: 16 << 10,
        inline_bytes_max: 64 << 10,
    };
    /// For callers who have not said who they are: enough for credentials, as Redis has it.
    pub const UNAUTHENTICATED: Self = Self {
        frame_bytes_max: 64 << 10,
        bulk_bytes_max: 16 << 10,
        arguments_max: 10,
        inline_bytes_max: 16 << 10,
    };
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

/// Why input is not a command and never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A count or length that is not a number.
    #[error("protocol error: a length must be a decimal number that ends with a line break")]
    Length,
    /// An argument of another type than a bulk string.
    #[error("protocol error: expected '$', the arguments of a command are bulk strings")]
    NotBulk,
    /// An argument that is longer or shorter than it says.
    #[error("protocol error: a bulk string does not end where its length says")]
    Unterminated,
    /// A browser, which any web page can make send lines to this machine.
    #[error("protocol error: this is the Redis protocol, not HTTP")]
    Http,
    /// A client that begins with a TLS handshake.
    #[error("protocol error: this port does not use TLS")]
    Tls,
    /// Bytes that are no command in either form.
    #[error(
        "protocol error: a command is an array of bulk strings, or a line of text that begins with the command's name"
    )]
    NotACommand,
    /// A quote without its counterpart.
    #[error("protocol error: unbalanced quotes in an inline command")]
    Quotes,
    /// A backslash between quotes.
    #[error("protocol error: inline commands have no escapes; send an array of bulk strings")]
    Escape,
    /// Too many arguments.
    #[error("protocol error: a command has at most {max} arguments here")]
    Arguments {
        /// How many are allowed.
        max: usize,
    },
    /// An argument that is too long.
    #[error("protocol error: an argument has at most {max} bytes here")]
    Bulk {
        /// How many bytes are allowed.
        max: usize,
    },
    /// A command that is too long.
    #[error("protocol error: a command has at most {max} bytes here")]
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

/// The number of bytes of an incomplete line that are inspected.
const LINE_START_BYTES: usize = 64;
/// The first byte of a TLS record with a handshake in it.
const TLS_HANDSHAKE: u8 = 0x16;
/// The shortest argument: `$0`, a line break, nothing, a line break.
const ARGUMENT_BYTES_MIN: usize = 6;

/// Finds the command that starts at `at` and appends the positions of its arguments to `spans`.
///
/// Unless there is a whole command, `spans` stays as it was.
///
/// # Errors
/// If no further input can make it a command, or it is larger than is allowed.
pub fn parse(
    input: &[u8],
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
    let (count, mut at) = match parse_length(input, start + 1)? {
        Some(Length { negative: true, next, .. }) => return Ok(Parsed::Command { end: next }),
        Some(Length { value, next, .. }) => (value, next),
        None => return incomplete(input.len() + 1),
    };
    if count > limits.arguments_max {
        return Err(Malformed::Arguments { max: limits.arguments_max });
    }
    for left in (0..count).rev() {
        match input.get(at) {
            Some(b'$') => {}
            Some(_) => return Err(Malformed::NotBulk),
            None => return incomplete(at + (left + 1) * ARGUMENT_BYTES_MIN),
        }
        let (length, body) = match parse_length(input, at + 1)? {
            Some(Length { negative: true, .. }) => return Err(Malformed::Length),
            Some(Length { value, next, .. }) => (value, next),
            None => return incomplete(input.len() + 1 + left * ARGUMENT_BYTES_MIN),
        };
        if length > limits.bulk_bytes_max {
            return Err(Malformed::Bulk { max: limits.bulk_bytes_max });
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

/// Reads a number up to its line break, or nothing if the line break has not arrived.
fn parse_length(input: &[u8], at: usize) -> Result<Option<Length>, Malformed> {
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
                    Some(_) => Err(Malformed::Length),
                };
            }
            Some(_) => return Err(Malformed::Length),
        }
    }
    Err(Malformed::Length)
}

fn parse_line(
    input: &[u8],
    start: usize,
    limits: &FrameLimits,
    spans: &mut Vec<Span>,
) -> Result<Parsed, Malformed> {
    let rest = input.get(start..).unwrap_or_default();
    let window = rest.get(..limits.inline_bytes_max).unwrap_or(rest);
    let Some(length) = memchr::memchr(b'\n', window) else {
        if rest.len() >= limits.inline_bytes_max {
            return Err(Malformed::Frame { max: limits.inline_bytes_max });
        }
        // What is no line of text is refused before the line is whole: there may never be a line break in it.
        require_text(rest.get(..LINE_START_BYTES).unwrap_or(rest))?;
        return Ok(Parsed::Incomplete { needed: input.len() + 1 });
    };
    let line = window.get(..length).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    require_text(line)?;
    if is_http(line) {
        return Err(Malformed::Http);
    }
    let before = spans.len();
    let mut at = 0;
    while let Some(argument) = next_argument(line, &mut at)? {
        if spans.len() - before == limits.arguments_max {
            return Err(Malformed::Arguments { max: limits.arguments_max });
        }
        spans.push(Span::new(start + argument.start, start + argument.end));
    }
    Ok(Parsed::Command { end: start + length + 1 })
}

/// Refuses bytes that are no text: what follows them is no command either. `line` may be cut anywhere.
fn require_text(line: &[u8]) -> Result<(), Malformed> {
    if line.first() == Some(&TLS_HANDSHAKE) {
        return Err(Malformed::Tls);
    }
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let is_text = match str::from_utf8(line) {
        Ok(_) => true,
        // The end may be part of a character.
        Err(error) => error.error_len().is_none(),
    };
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_name = first.is_none_or(|&first| first.is_ascii_alphabetic() || is_quote(first));
    if is_name && is_text && !line.iter().any(is_control) { Ok(()) } else { Err(Malformed::NotACommand) }
}

fn is_quote(byte: u8) -> bool {
    byte == b'"' || byte == b'\''
}

/// Whether a line is from the head of an HTTP request. What follows such a line may be commands that a web page smuggles in.
fn is_http(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let version = line.iter().rposition(|&byte| byte == b' ').and_then(|at| line.get(at + 1..));
    let starts = |text: &[u8], word: &[u8]| {
        text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    starts(line, b"host:") || version.is_some_and(|version| starts(version, b"http/"))
}

/// Where the next argument of a line is, plain or between quotes.
fn next_argument(line: &[u8], at: &mut usize) -> Result<Option<Range<usize>>, Malformed> {
    let is_space = u8::is_ascii_whitespace;
    while line.get(*at).is_some_and(is_space) {
        *at += 1;
    }
    let Some(&first) = line.get(*at) else { return Ok(None) };
    let rest = |from: usize| line.get(from..).unwrap_or_default();
    if !is_quote(first) {
        let length = rest(*at).iter().position(is_space).unwrap_or(line.len() - *at);
        let argument = *at..*at + length;
        if rest(*at).iter().take(length).any(|&byte| is_quote(byte)) {
            return Err(Malformed::Quotes);
        }
        *at = argument.end;
        return Ok(Some(argument));
    }
    let start = *at + 1;
    let length = rest(start).iter().position(|&byte| byte == first).ok_or(Malformed::Quotes)?;
    let argument = start..start + length;
    if rest(start).iter().take(length).any(|&byte| byte == b'\\') {
        return Err(Malformed::Escape);
    }
    *at = argument.end + 1;
    if line.get(*at).is_some_and(|byte| !is_space(byte)) {
        return Err(Malformed::Quotes);
    }
    Ok(Some(argument))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use redis_protocol::resp2::encode;
    use redis_protocol::resp2::types::{OwnedFrame, Resp2Frame};

    use super::*;

    const LIMITS: FrameLimits = FrameLimits::DEFAULT;

    /// The arguments of a whole command, and where it ends.
    type Whole = (Vec<Vec<u8>>, usize);

    fn parsed(input: &[u8], limits: &FrameLimits) -> Result<Option<Whole>, Malformed> {
        let mut spans = Vec::new();
        Ok(match parse(input, 0, limits, &mut spans)? {
            Parsed::Command { end } => {
                Some((spans.iter().map(|span| span.of(input).to_vec()).collect(), end))
            }
            Parsed::Incomplete { needed } => {
                assert!(needed > input.len(), "{needed} bytes are already there");
                assert!(spans.is_empty());
                None
            }
        })
    }

    fn words(line: &str) -> Vec<Vec<u8>> {
        let (words, end) = parsed(line.as_bytes(), &LIMITS).unwrap().unwrap();
        assert_eq!(end, line.len());
        words
    }

    fn refusal(input: &[u8]) -> Malformed {
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
                match parse(&bytes[..end], 0, &LIMITS, &mut spans).unwrap() {
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
            input in vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'-'), b'0'..=b'3', any::<u8>()], 0..80),
        ) {
            let mut spans = Vec::new();
            if let Ok(Parsed::Command { end }) = parse(&input, 0, &LIMITS, &mut spans) {
                prop_assert!(end <= input.len());
                prop_assert!(spans.iter().map(|span| span.len()).sum::<usize>() <= end);
            }
            prop_assert!(spans.len() <= input.len());
        }
    }

    #[test]
    fn lines_are_words() {
        assert_eq!(words("PING\r\n"), [b"PING"]);
        assert_eq!(words("  follows  1\t2 \n"), [&b"follows"[..], b"1", b"2"]);
        assert_eq!(words("echo \"a b\" 'c \"d'\n"), [&b"echo"[..], b"a b", b"c \"d"]);
        assert_eq!(words("echo \"\"\n"), [&b"echo"[..], b""]);
        assert_eq!(words("\r\n"), Vec::<Vec<u8>>::new());
        for line in ["echo \"a\n", "echo \"a\"b\n", "echo a\"b\"\n"] {
            assert_eq!(refusal(line.as_bytes()), Malformed::Quotes, "{line}");
        }
        assert_eq!(refusal(b"echo \"\\x00\"\n"), Malformed::Escape);
    }

    #[test]
    fn no_arguments_are_nothing_to_do() {
        for input in [&b"*0\r\n"[..], b"*-1\r\n"] {
            assert_eq!(parsed(input, &LIMITS).unwrap(), Some((Vec::new(), input.len())));
        }
    }

    #[test]
    fn what_can_never_be_a_command_is_refused_at_once() {
        for input in ["*x\r\n", "*1x", "*\r\n", "*1\rx", "*1\r\n$x", "*1\r\n$-1\r\n", "*1\r\n$1\n"] {
            assert_eq!(refusal(input.as_bytes()), Malformed::Length, "{input:?}");
        }
        assert_eq!(refusal(b"*9999999999999999999999\r\n"), Malformed::Length);
        for input in ["*1\r\n:1\r\n", "*1\r\n*1\r\n", "*2\r\n$1\r\na\r\n+b\r\n"] {
            assert_eq!(refusal(input.as_bytes()), Malformed::NotBulk, "{input:?}");
        }
        assert_eq!(refusal(b"*1\r\n$1\r\nab\r\n"), Malformed::Unterminated);
    }

    #[test]
    fn what_is_neither_array_nor_text_is_refused_before_its_line_ends() {
        for input in [&b"\x16"[..], b"\x16\x03\x01\x02\x00\x01", b"\x16\x03\x01\nPING\n"] {
            assert_eq!(refusal(input), Malformed::Tls, "{input:?}");
        }
        for input in [
            &b"\0"[..],
            b"\xff\xfe",
            b"\x80\x2e\x01",
            b"PI\x01NG",
            b"ECHO \xff\xff",
            b"ECHO \xff\n",
            b"ECHO \0\r\n",
            b"+OK\r\n",
            b"$4\r\nPING\r\n",
            b" \t1 2\r\n",
        ] {
            assert_eq!(refusal(input), Malformed::NotACommand, "{input:?}");
        }
        // Text in any script, cut anywhere.
        let line = "echo \"grüße\" 'été' \t日本\r\n";
        assert_eq!(words(line).len(), 4);
        for end in 1..line.len() {
            assert_eq!(parsed(&line.as_bytes()[..end], &LIMITS), Ok(None), "{end}");
        }
    }

    #[test]
    fn the_head_of_a_http_request_is_refused() {
        for line in ["POST / HTTP/1.1\r\n", "POST / HTTP/1.1 \r\n", "PRI * HTTP/2.0\r\n", " Host: x\r\n"] {
            assert_eq!(refusal(line.as_bytes()), Malformed::Http, "{line:?}");
        }
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
        let line = [b'a'; 200];
        let limits = FrameLimits { inline_bytes_max: 100, ..LIMITS };
        assert_eq!(parsed(&line, &limits), Err(Malformed::Frame { max: 100 }));
        let limits = FrameLimits { arguments_max: 2, ..LIMITS };
        assert_eq!(parsed(b"a b c\n", &limits), Err(Malformed::Arguments { max: 2 }));
    }
}
