//! Replies of a node, in version 2 of the protocol.

/// The longest text or list of a reply. What is longer was not asked for.
const LENGTH_MAX: usize = 64 << 20;

/// Lists in lists, at most.
const DEPTH_MAX: u8 = 8;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nothing,
    Integer(i64),
    Text(Vec<u8>),
    Error(String),
    List(Vec<Self>),
}

/// Bytes that are no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Reply {
    /// Reads the reply at the front of some bytes, and how long it is. None if its end is not there yet.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let mut parser = Parser { bytes, at: 0 };
        Ok(parser.reply(DEPTH_MAX)?.map(|reply| (reply, parser.at)))
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Text(_) => self.text()?.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn reply(&mut self, depth: u8) -> Result<Option<Reply>, Malformed> {
        let Some(line) = self.line() else { return Ok(None) };
        let (&kind, rest) = line.split_first().ok_or(Malformed)?;
        let rest = std::str::from_utf8(rest).map_err(|_| Malformed)?;
        match kind {
            b'+' => Ok(Some(Reply::Text(rest.as_bytes().to_vec()))),
            b'-' => Ok(Some(Reply::Error(rest.to_owned()))),
            b':' => Ok(Some(Reply::Integer(rest.parse().map_err(|_| Malformed)?))),
            b'$' => self.bulk(rest),
            b'*' => self.items(rest, depth),
            _ => Err(Malformed),
        }
    }

    fn bulk(&mut self, length: &str) -> Result<Option<Reply>, Malformed> {
        let Some(length) = count(length)? else { return Ok(Some(Reply::Nothing)) };
        let Some(found) = self.bytes.get(self.at..self.at + length + 2) else { return Ok(None) };
        let text = found.strip_suffix(b"\r\n").ok_or(Malformed)?;
        self.at += found.len();
        Ok(Some(Reply::Text(text.to_vec())))
    }

    fn items(&mut self, length: &str, depth: u8) -> Result<Option<Reply>, Malformed> {
        let Some(length) = count(length)? else { return Ok(Some(Reply::Nothing)) };
        let depth = depth.checked_sub(1).ok_or(Malformed)?;
        let mut items = Vec::new();
        for _ in 0..length {
            let Some(item) = self.reply(depth)? else { return Ok(None) };
            items.push(item);
        }
        Ok(Some(Reply::List(items)))
    }

    /// The next line, without its end.
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let length = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += length + 2;
        Some(&rest[..length])
    }
}

/// A length; none of what is not there.
fn count(text: &str) -> Result<Option<usize>, Malformed> {
    if text == "-1" {
        return Ok(None);
    }
    text.parse().ok().filter(|&length| length <= LENGTH_MAX).map(Some).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_when_they_are_whole() {
        let bytes = b"*5\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n-MOVED 1 a:2\r\n*1\r\n+OK\r\n:1\r\n";
        let expected = Reply::List(vec![
            Reply::Integer(-7),
            Reply::Text(b"a\r\nb".to_vec()),
            Reply::Nothing,
            Reply::Error("MOVED 1 a:2".to_owned()),
            Reply::List(vec![Reply::Text(b"OK".to_vec())]),
        ]);
        let end = bytes.len() - 4;
        assert_eq!(Reply::parse(bytes), Ok(Some((expected, end))));
        for length in 0..end {
            assert_eq!(Reply::parse(&bytes[..length]), Ok(None), "{length} bytes");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in ["?\r\n", "\r\n", ":x\r\n", "$-2\r\n", "$99999999999\r\n", "$1\r\nabc\r\n"] {
            assert_eq!(Reply::parse(bytes.as_bytes()), Err(Malformed), "{bytes:?}");
        }
        let nested = "*1\r\n".repeat(20);
        assert_eq!(Reply::parse(nested.as_bytes()), Err(Malformed));
    }
}
