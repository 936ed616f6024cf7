//! Parses one line of a text file. `lines` splits the file.

use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, IdKind, Timestamp};
use memchr::memchr;

use super::Rules;

/// The maximum length of a line: 100 bytes for an edge, more for comments.
pub(crate) const LINE_LEN_MAX: usize = 4_096;

/// The largest integer id.
const INTEGER_MAX: u64 = i64::MAX as u64;

/// The separator of columns, and what messages call several of it.
#[derive(Clone, Copy, Debug)]
struct Separator {
    byte: u8,
    name: &'static str,
}

/// All separators, in the order in which a line is searched for them.
const SEPARATORS: [Separator; 3] = [
    Separator { byte: b',', name: "commas" },
    Separator { byte: b'\t', name: "tabs" },
    Separator { byte: b' ', name: "single spaces" },
];

/// An edge of a text file.
pub(crate) type ParsedEdge = (Edge, Option<Timestamp>);

/// Parses the lines of one file: the first one decides the separator.
#[derive(Debug)]
pub(crate) struct LineParser {
    rules: Rules,
    separator: Option<Separator>,
    /// Whether the next line may still be the header.
    header_may_come: bool,
}

impl LineParser {
    /// A parser at the start of a file.
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, separator: None, header_may_come: true }
    }

    /// Parses a plain edge of integers at the start of `text`, which continues with more lines: the edge, and the length of
    /// its line with the line end. `None` for every other line.
    #[inline]
    pub(crate) fn quick(&self, text: &[u8]) -> Option<(ParsedEdge, usize)> {
        let separator = self.separator?.byte;
        if self.rules.ids == Some(IdKind::Uuid) {
            return None;
        }
        let (follower, end) = decimal(text, 0)?;
        if text.get(end) != Some(&separator) {
            return None;
        }
        let (followee, mut end) = decimal(text, end + 1)?;
        let mut since = None;
        if text.get(end) == Some(&separator) {
            let (moment, length) = self.quick_since(text.get(end + 1..)?, separator)?;
            since = Some(moment);
            end += 1 + length;
        }
        if text.get(end) == Some(&b'\r') {
            end += 1;
        }
        if text.get(end) != Some(&b'\n') || follower > INTEGER_MAX || followee > INTEGER_MAX {
            return None;
        }
        let edge = Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
        Some(((edge, since), end + 1))
    }

    /// Parses the last column of a line: the time and its length.
    #[inline]
    fn quick_since(&self, text: &[u8], separator: u8) -> Option<(Timestamp, usize)> {
        if let Some((millis, length)) = decimal(text, 0)
            && matches!(text.get(length), Some(b'\r' | b'\n'))
        {
            let is_good = millis <= self.rules.since_max.millis();
            return is_good.then(|| (Timestamp::from_millis(millis), length));
        }
        let line = text.get(..memchr(b'\n', text)?)?;
        let column = line.strip_suffix(b"\r").unwrap_or(line);
        // With spaces as separators, a time with a space is two columns.
        if column.contains(&separator) {
            return None;
        }
        let since = Timestamp::parse(std::str::from_utf8(column).ok()?)?;
        (since <= self.rules.since_max).then_some((since, column.len()))
    }

    /// Parses any line without its line end: `None` for a comment, a blank line or the header. The error is the reason.
    pub(crate) fn careful(&mut self, line: &[u8]) -> Result<Option<ParsedEdge>, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LINE_LEN_MAX {
            return Err(overlong());
        }
        if line.contains(&0) {
            return Err("the line contains a NUL byte".to_owned());
        }
        let text = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())?;
        if text.starts_with('#') || text.bytes().all(|byte| byte == b' ' || byte == b'\t') {
            return Ok(None);
        }
        let header_may_come = std::mem::take(&mut self.header_may_come);
        let separator = match self.separator {
            Some(separator) => separator,
            None => detect(line)?,
        };
        if header_may_come && is_header(text, separator) {
            self.separator = Some(separator);
            return Ok(None);
        }
        let parsed = self.columns(line, separator)?;
        // Only a valid line decides the separator: a skipped one must not make all others malformed.
        self.separator = Some(separator);
        Ok(Some(parsed))
    }

    fn columns(&self, line: &[u8], separator: Separator) -> Result<ParsedEdge, String> {
        let mut columns = line.split(|&byte| byte == separator.byte);
        let (follower, followee) = (columns.next(), columns.next());
        let (Some(follower), Some(followee)) = (follower, followee) else {
            return Err(format!("expected follower and followee, separated by {}", separator.name));
        };
        let since = columns.next();
        let surplus = columns.count();
        if surplus > 0 {
            return Err(format!(
                "{} columns separated by {}; expected follower, followee and at most since",
                surplus + 3,
                separator.name
            ));
        }
        let id =
            |name: &str, text: &[u8]| self.rules.parse_id(text).map_err(|error| format!("{name} {error}"));
        let edge = Edge { follower: id("follower", follower)?, followee: id("followee", followee)? };
        let since = since.map(|text| self.since(text)).transpose()?;
        Ok((edge, since))
    }

    fn since(&self, text: &[u8]) -> Result<Timestamp, String> {
        let text = std::str::from_utf8(text).map_err(|_| "since is not UTF-8".to_owned())?;
        parse_since(text, self.rules)
    }
}

/// Parses a time.
pub(crate) fn parse_since(text: &str, rules: Rules) -> Result<Timestamp, String> {
    let since = Timestamp::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        format!("since {shown:?} is neither an RFC 3339 time nor Unix milliseconds between 1970 and 9999")
    })?;
    require_not_ahead(since, rules)
}

/// Returns an error for a time in the future.
pub(crate) fn require_not_ahead(since: Timestamp, rules: Rules) -> Result<Timestamp, String> {
    if since > rules.since_max {
        return Err(format!("since {since} is more than 5 minutes in the future"));
    }
    Ok(since)
}

/// The reason for a line that is too long.
pub(crate) fn overlong() -> String {
    format!("the line is longer than {LINE_LEN_MAX} bytes")
}

/// Whether the column names are those of an edge.
pub(crate) fn are_column_names(names: &[&str]) -> bool {
    let same = |wanted: &[&str]| {
        names.len() == wanted.len()
            && names.iter().zip(wanted).all(|(name, wanted)| name.eq_ignore_ascii_case(wanted))
    };
    same(&["follower", "followee"])
        || same(&["follower", "followee", "since"])
        || same(&["from", "to"])
        || same(&["from", "to", "since"])
}

fn is_header(text: &str, separator: Separator) -> bool {
    let names: Vec<&str> = text.split(char::from(separator.byte)).take(4).collect();
    are_column_names(&names)
}

fn detect(line: &[u8]) -> Result<Separator, String> {
    let found = SEPARATORS.into_iter().find(|separator| line.contains(&separator.byte));
    found.ok_or_else(|| "expected follower and followee, separated by a comma, a tab or a space".to_owned())
}

/// Parses up to 19 digits from `at` on, which cannot overflow; returns the number and its end.
#[inline]
fn decimal(text: &[u8], at: usize) -> Option<(u64, usize)> {
    const DIGITS_MAX: usize = 19;
    let mut value: u64 = 0;
    let mut end = at;
    for &byte in text.get(at..)?.iter().take(DIGITS_MAX) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value * 10 + u64::from(digit);
        end += 1;
    }
    (end > at).then_some((value, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_794_729_600_000;

    fn parser(ids: IdKind) -> LineParser {
        LineParser::new(Rules::new(ids, Timestamp::from_millis(NOW)))
    }

    fn edge(follower: u64, followee: u64, since: Option<u64>) -> ParsedEdge {
        let edge = Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
        (edge, since.map(Timestamp::from_millis))
    }

    /// Parses lines in order, and requires that both parsers agree.
    fn read(lines: &[&str]) -> Result<Vec<ParsedEdge>, String> {
        let mut parser = parser(IdKind::Integer);
        let mut edges = Vec::new();
        for line in lines {
            let text = format!("{line}\nnext");
            let quick = parser.quick(text.as_bytes());
            let careful = parser.careful(line.as_bytes())?;
            if let Some((quick, length)) = quick {
                assert_eq!(Some(quick), careful, "{line:?}");
                assert_eq!(length, line.len() + 1, "{line:?}");
            }
            edges.extend(careful);
        }
        Ok(edges)
    }

    #[test]
    fn good_files() {
        let largest = i64::MAX as u64;
        for (lines, edges) in [
            (&["1,2"][..], vec![edge(1, 2, None)]),
            (&["1\t2", "3\t4"], vec![edge(1, 2, None), edge(3, 4, None)]),
            (&["1 2", "3 4 5"], vec![edge(1, 2, None), edge(3, 4, Some(5))]),
            (&["1,2\r", "3,4\r"], vec![edge(1, 2, None), edge(3, 4, None)]),
            (&["follower,followee", "1,2"], vec![edge(1, 2, None)]),
            (&["# made by hand", "", "Follower\tFOLLOWEE\tSince\r", "1\t2\t3"], vec![edge(1, 2, Some(3))]),
            (&["from to", "1 2", "#", " \t ", "3 4"], vec![edge(1, 2, None), edge(3, 4, None)]),
            (&["001,2", "1,0002"], vec![edge(1, 2, None), edge(1, 2, None)]),
            (
                &["00000000000000000000000001,2", "00000000000000000000000003,4"],
                vec![edge(1, 2, None), edge(3, 4, None)],
            ),
            (
                &["9223372036854775807,0", "0,9223372036854775807"],
                vec![edge(largest, 0, None), edge(0, largest, None)],
            ),
            (
                &["1,2,2026-11-15T08:00:00Z", "1,3,1794729600000"],
                vec![edge(1, 2, Some(NOW)), edge(1, 3, Some(NOW))],
            ),
            (&["1,2,2026-11-15 10:00:00.000+02:00"], vec![edge(1, 2, Some(NOW))]),
            (&["1,2,1794729900000", "1,2,1794729900000"], vec![edge(1, 2, Some(NOW + 300_000)); 2]),
            (&["1,1"], vec![edge(1, 1, None)]),
            (&[], vec![]),
        ] {
            assert_eq!(read(lines), Ok(edges), "{lines:?}");
        }
    }

    #[test]
    fn malformed_lines_say_why() {
        for (line, reason) in [
            ("1", "expected follower and followee, separated by a comma, a tab or a space"),
            ("1,", "followee \"\" is not a valid id"),
            (",2", "follower \"\" is not a valid id"),
            ("1,2,", "since \"\" is neither"),
            ("1,2,3,4", "4 columns"),
            ("1,2,,", "4 columns"),
            ("a,2", "follower \"a\" is not a valid id"),
            ("1,b", "followee \"b\" is not a valid id"),
            ("-1,2", "not a valid id"),
            ("+1,2", "not a valid id"),
            ("1.0,2", "not a valid id"),
            ("1, 2", "not a valid id"),
            (" 1,2", "not a valid id"),
            ("\"1\",\"2\"", "not a valid id"),
            ("1  2", "followee \"\" is not a valid id"),
            ("9223372036854775808,1", "at most 2^63 - 1"),
            ("1,18446744073709551616", "at most 2^63 - 1"),
            ("99999999999999999999999,1", "at most 2^63 - 1"),
            ("1,2,yesterday", "neither an RFC 3339 time nor Unix milliseconds"),
            ("1,2,-5", "neither an RFC 3339 time nor Unix milliseconds"),
            ("1,2,2026-02-30T00:00:00Z", "neither an RFC 3339 time nor Unix milliseconds"),
            ("1,2,1794729900001", "more than 5 minutes in the future"),
            ("1,2,9999999999999999999", "neither an RFC 3339 time nor Unix milliseconds"),
            ("1,2,2026-11-15T08:05:00.001Z", "more than 5 minutes in the future"),
            ("1,2\0", "NUL"),
            ("# \0", "NUL"),
            ("follower,followee,since,extra", "4 columns"),
            ("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,1", "integer ids"),
            ("1;2", "expected follower and followee"),
            ("1,2#comment", "not a valid id"),
            ("１,2", "not a valid id"),
        ] {
            // As the first line of a file, and after a valid one, when the quick parser applies.
            for before in [None, Some("1,2")] {
                let lines: Vec<&str> = before.into_iter().chain([line]).collect();
                let found = read(&lines).unwrap_err();
                let is_other_separator = before.is_some() && !line.contains([',', '\0']);
                let expected = if is_other_separator { "separated by commas" } else { reason };
                assert!(found.contains(expected), "{line:?} after {before:?}: {found}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        for line in [&b"1,\xff"[..], b"# \xc3\x28", b"\xed\xa0\x80,1"] {
            assert_eq!(parser(IdKind::Integer).careful(line), Err("the line is not UTF-8".to_owned()));
        }
        let long = vec![b'1'; LINE_LEN_MAX + 1];
        assert_eq!(parser(IdKind::Integer).careful(&long), Err(overlong()));
    }

    #[test]
    fn a_time_with_a_space_is_two_columns_between_spaces() {
        let time = "2026-11-15 08:00:00Z";
        assert!(read(&["1 2", &format!("1 2 {time}")]).unwrap_err().contains("4 columns"));
        assert_eq!(read(&["1,2", &format!("1,2,{time}")]), Ok(vec![edge(1, 2, None), edge(1, 2, Some(NOW))]));
    }

    #[test]
    fn the_first_line_decides_what_separates() {
        for (first, second) in [("1,2", "1\t2"), ("1\t2", "1,2"), ("1\t2", "1 2"), ("1 2", "1\t2")] {
            assert!(read(&[first, second]).is_err(), "{first:?} then {second:?}");
        }
        let mut parser = parser(IdKind::Integer);
        assert!(parser.careful(b"hello, world").is_err());
        assert_eq!(
            parser.careful(b"1\t2"),
            Ok(Some(edge(1, 2, None))),
            "a malformed line decides no separator"
        );
    }

    #[test]
    fn a_header_comes_first_or_not_at_all() {
        assert!(read(&["1,2", "follower,followee"]).is_err());
        assert!(read(&["follower,followee", "follower,followee"]).is_err());
        assert!(read(&["followee,follower"]).is_err());
    }

    #[test]
    fn uuids() {
        let text = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,00000000-0000-0000-0000-000000000001,7";
        let (edge, since) = parser(IdKind::Uuid).careful(text.as_bytes()).unwrap().unwrap();
        assert_eq!(edge.followee, Id::Uuid(1));
        assert_eq!(since, Some(Timestamp::from_millis(7)));
        assert!(parser(IdKind::Uuid).careful(b"1,2").unwrap_err().contains("uses UUIDs"));
    }
}
