//! Standard output. Comments may contain terminal escapes, so control characters are escaped on a terminal. Pipes and files
//! get every byte unchanged.

use std::io::{self, IsTerminal, Stdout, Write};

/// The first byte of the UTF-8 encoding of U+0080 to U+00BF, among which the C1 control characters are.
const C1_LEAD: u8 = 0xc2;

/// Standard output.
pub(crate) type StandardOutput = Escaping<Stdout>;

impl StandardOutput {
    /// Escapes control characters if it is a terminal.
    pub(crate) fn new() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self { out, is_terminal, has_lead: false }
    }
}

/// Writes UTF-8 with control characters, except tabs and line ends, escaped as `\u009b`. JSON keeps its meaning; in text the
/// escape is visible.
#[derive(Debug)]
pub(crate) struct Escaping<W> {
    out: W,
    is_terminal: bool,
    /// The last byte may start a control character and is not written yet.
    has_lead: bool,
}

impl<W: Write> Escaping<W> {
    fn escaped(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len() + 16);
        for &byte in bytes {
            let follows_lead = std::mem::take(&mut self.has_lead);
            let is_c1 = follows_lead && (0x80..0xa0).contains(&byte);
            if follows_lead && !is_c1 {
                text.push(C1_LEAD);
            }
            let is_ascii_control = byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
            match byte {
                C1_LEAD => self.has_lead = true,
                _ if is_c1 || is_ascii_control => text.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => text.push(byte),
            }
        }
        text
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        let escaped = self.escaped(bytes);
        self.out.write_all(&escaped)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output for a text that is written in parts.
    fn written(text: &str, is_terminal: bool, part: usize) -> String {
        let mut escaping = Escaping { out: Vec::new(), is_terminal, has_lead: false };
        text.as_bytes().chunks(part).for_each(|part| escaping.write_all(part).unwrap());
        escaping.flush().unwrap();
        String::from_utf8(escaping.out).unwrap()
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let hostile = "\u{9b}31m red\u{7f}\u{80}\u{9f}\u{1b}[0m\r\n\tpläin £ \u{a0}\u{2028}😀";
        let shown = "\\u009b31m red\\u007f\\u0080\\u009f\\u001b[0m\\u000d\n\tpläin £ \u{a0}\u{2028}😀";
        for part in 1..hostile.len() {
            assert_eq!(written(hostile, true, part), shown);
            assert_eq!(written(hostile, false, part), hostile, "other streams are unchanged");
        }
    }

    #[test]
    fn json_keeps_its_meaning_on_a_terminal() {
        let body = "\u{9b}31m\u{7f}\"£\\\n\u{85}";
        let shown = written(&serde_json::to_string(body).unwrap(), true, 3);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), body);
    }
}
