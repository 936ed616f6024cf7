//! Commands as lines of text, for people at a terminal: words and quoted arguments, as Redis splits them. Arrays are read
//! by [`super::frame`].
//!
//! An argument is where it was received, unless it has quotes or escapes within it: then it is written over its source,
//! which is never shorter. Nothing is allocated, and a line is changed only when it is whole, so it is read once.

use super::frame::{FrameLimits, Malformed, Parsed, Span};

/// The number of bytes of an incomplete line that are inspected.
const LINE_START_BYTES: usize = 64;
/// The first byte of a TLS record with a handshake in it.
const TLS_HANDSHAKE: u8 = 0x16;

/// Finds the arguments of the line that starts at `start`.
pub(super) fn parse_line(
    input: &mut [u8],
    start: usize,
    limits: &FrameLimits,
    spans: &mut Vec<Span>,
) -> Result<Parsed, Malformed> {
    let rest = input.get(start..).unwrap_or_default();
    let window = rest.get(..limits.inline_bytes_max).unwrap_or(rest);
    let Some(length) = memchr::memchr(b'\n', window) else {
        if rest.len() >= limits.inline_bytes_max {
            return Err(Malformed::Inline { max: limits.inline_bytes_max });
        }
        // What is no line of text is refused before the line is whole: there may never be a line break in it.
        require_text(rest.get(..LINE_START_BYTES).unwrap_or(rest))?;
        return Ok(Parsed::Incomplete { needed: input.len() + 1 });
    };
    let line = input.get_mut(start..start + length).unwrap_or_default();
    let end = if line.ends_with(b"\r") { length - 1 } else { length };
    let line = line.get_mut(..end).unwrap_or_default();
    require_text(line)?;
    if is_http(line) {
        return Err(Malformed::Http);
    }
    let before = spans.len();
    let mut at = 0;
    while let Some(Argument { start: from, end: to, next }) = next_argument(line, at)? {
        if spans.len() - before == limits.arguments_max {
            return Err(limits.too_many_arguments());
        }
        spans.push(Span::new(start + from, start + to));
        at = next;
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
    let is_name = first.is_none_or(|&first| first.is_ascii_alphabetic() || matches!(first, b'"' | b'\''));
    if is_name && is_text && !line.iter().any(is_control) { Ok(()) } else { Err(Malformed::NotACommand) }
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

/// An argument of a line, and where the search for the next one starts.
struct Argument {
    start: usize,
    end: usize,
    next: usize,
}

/// Which quotes an argument is within.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    No,
    Single,
    Double,
}

/// The next argument of a line, unescaped in its place. Quotes may start within a word, but after their end there is a
/// space or nothing.
fn next_argument(line: &mut [u8], from: usize) -> Result<Option<Argument>, Malformed> {
    let byte = |line: &[u8], at: usize| line.get(at).copied();
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let mut at = from;
    while byte(line, at).is_some_and(is_space) {
        at += 1;
    }
    let start = at;
    let mut end = at;
    let mut quoted = Quoted::No;
    if byte(line, at).is_none() {
        return Ok(None);
    }
    loop {
        let Some(first) = byte(line, at) else {
            if quoted != Quoted::No {
                return Err(Malformed::Quotes);
            }
            return Ok(Some(Argument { start, end, next: at }));
        };
        let mut value = first;
        match (quoted, first) {
            (Quoted::No, b' ' | b'\t' | b'\r' | b'\n') => return Ok(Some(Argument { start, end, next: at })),
            (Quoted::No, b'"' | b'\'') => {
                quoted = if first == b'"' { Quoted::Double } else { Quoted::Single };
                at += 1;
                continue;
            }
            (Quoted::Double, b'"') | (Quoted::Single, b'\'') => {
                if byte(line, at + 1).is_some_and(|next| !is_space(next)) {
                    return Err(Malformed::Quotes);
                }
                return Ok(Some(Argument { start, end, next: at + 1 }));
            }
            (Quoted::Double, b'\\') => {
                let escape = unescape(line.get(at + 1..).unwrap_or_default());
                value = escape.value;
                at += escape.length;
            }
            (Quoted::Single, b'\\') if byte(line, at + 1) == Some(b'\'') => {
                value = b'\'';
                at += 1;
            }
            _ => {}
        }
        at += 1;
        // Never ahead of what is read.
        if let Some(place) = line.get_mut(end) {
            *place = value;
        }
        end += 1;
    }
}

/// What an escape stands for, and how many bytes follow its backslash.
struct Escape {
    value: u8,
    length: usize,
}

/// The escape of double quotes whose backslash is before `rest`.
fn unescape(rest: &[u8]) -> Escape {
    let digit = |at: usize| rest.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let Some(&first) = rest.first() else { return Escape { value: b'\\', length: 0 } };
    if let (b'x', Some(high), Some(low)) = (first, digit(1), digit(2)) {
        return Escape { value: (high * 16 + low) as u8, length: 3 };
    }
    let value = match first {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    };
    Escape { value, length: 1 }
}

#[cfg(test)]
mod tests {
    use super::super::frame::tests::{parsed, refusal};
    use super::*;

    const LIMITS: FrameLimits = FrameLimits::DEFAULT;

    fn words(line: &str) -> Vec<Vec<u8>> {
        let (words, end) = parsed(line.as_bytes(), &LIMITS).unwrap().unwrap();
        assert_eq!(end, line.len());
        words
    }

    #[test]
    fn lines_are_words() {
        assert_eq!(words("PING\r\n"), [b"PING"]);
        assert_eq!(words("  follows  1\t2 \n"), [&b"follows"[..], b"1", b"2"]);
        assert_eq!(words("echo \"a b\" 'c \"d'\n"), [&b"echo"[..], b"a b", b"c \"d"]);
        assert_eq!(words("echo \"\"\n"), [&b"echo"[..], b""]);
        assert_eq!(words("\r\n"), Vec::<Vec<u8>>::new());
        for line in [
            "echo \"a\n",
            "echo \"a\"b\n",
            "echo 'a\n",
            "echo 'a\\'\n",
            "echo \"a\\\"\n",
            "set \"\"\"a\"\"\" b\n",
        ] {
            assert_eq!(refusal(line.as_bytes()), Malformed::Quotes, "{line}");
        }
    }

    #[test]
    fn escapes_are_those_of_redis() {
        for (line, argument) in [
            (r#"echo "\x41\x4a\xff""#, &b"AJ\xff"[..]),
            (r#"echo "\n\r\t\b\a""#, b"\n\r\t\x08\x07"),
            (r#"echo "\"\\\q""#, b"\"\\q"),
            (r#"echo "\x4""#, b"x4"),
            (r#"echo "\xzz""#, b"xzz"),
            (r"echo '\x41\n\\ '", br"\x41\n\\ "),
            // The second backslash escapes the quote.
            (r"echo 'a\\'", b""),
            (r"echo 'it\'s'", b"it's"),
            (r#"echo a"b c"d"#, b""),
            (r#"echo a"b c""#, b"ab c"),
            (r"echo a\nb", br"a\nb"),
        ] {
            let input = format!("{line}\r\nPING\r\n");
            match parsed(input.as_bytes(), &LIMITS) {
                Ok(Some((words, end))) => {
                    assert_eq!(words, [&b"echo"[..], argument], "{line}");
                    assert_eq!(end, line.len() + 2, "{line}");
                }
                refused => {
                    assert!(argument.is_empty() && refused == Err(Malformed::Quotes), "{line}: {refused:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_text_is_refused_before_its_line_ends() {
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
    fn long_lines_and_many_words_are_refused() {
        let limits = FrameLimits { inline_bytes_max: 100, ..LIMITS };
        assert_eq!(parsed(&[b'a'; 200], &limits), Err(Malformed::Inline { max: 100 }));
        let limits = FrameLimits { arguments_max: 2, ..LIMITS };
        assert_eq!(parsed(b"a b c\n", &limits), Err(limits.too_many_arguments()));
    }
}
