//! A command for the node of one slot, as it is sent.

use super::slot_of;

/// A script, by its place in the list that every connection loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script(pub(super) usize);

impl Script {
    /// The script at a place of the list.
    pub(crate) const fn new(place: usize) -> Self {
        Self(place)
    }
}

/// What is called.
#[derive(Clone, Debug)]
enum Called {
    Script { script: Script, keys: usize },
    Name(&'static str),
}

/// A command, and the slot whose node it is for.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(super) slot: u16,
    called: Called,
    /// Keys and arguments, encoded.
    rest: Vec<u8>,
    count: usize,
}

impl Command {
    /// A call of a script with keys that all have one tag.
    pub(crate) fn script(script: Script, tag: &str) -> Self {
        let called = Called::Script { script, keys: 0 };
        Self { slot: slot_of(tag), called, rest: Vec::new(), count: 0 }
    }

    /// A command by its name, for the node of a tag.
    pub(crate) fn named(name: &'static str, tag: &str) -> Self {
        Self { slot: slot_of(tag), called: Called::Name(name), rest: Vec::new(), count: 0 }
    }

    /// Adds a key. The keys of a script come before its arguments.
    pub(crate) fn key(&mut self, key: &str) {
        if let Called::Script { keys, .. } = &mut self.called {
            *keys += 1;
        }
        self.argument(key.as_bytes());
    }

    /// Adds an argument.
    pub(crate) fn argument(&mut self, bytes: impl AsRef<[u8]>) {
        push(&mut self.rest, bytes.as_ref());
        self.count += 1;
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.argument(number.to_string());
    }

    /// Appends the command as a connection sends it that knows its scripts by these names.
    pub(super) fn encode(&self, scripts: &[String], out: &mut Vec<u8>) {
        match &self.called {
            Called::Name(name) => {
                push_count(out, b'*', self.count + 1);
                push(out, name.as_bytes());
            }
            Called::Script { script, keys } => {
                push_count(out, b'*', self.count + 3);
                push(out, b"EVALSHA");
                push(out, scripts[script.0].as_bytes());
                push(out, keys.to_string().as_bytes());
            }
        }
        out.extend_from_slice(&self.rest);
    }
}

/// A command of words.
pub(super) fn words(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    push_count(&mut out, b'*', words.len());
    words.iter().for_each(|word| push(&mut out, word.as_bytes()));
    out
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    push_count(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn push_count(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(count.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lists_of_texts() {
        let mut named = Command::named("GET", "a");
        named.key("{a}b");
        let mut script = Command::script(Script::new(1), "a");
        script.key("{a}");
        script.number(17);
        let mut sent = Vec::new();
        named.encode(&[], &mut sent);
        script.encode(&["no".to_owned(), "yes".to_owned()], &mut sent);
        let expected = "*2\r\n$3\r\nGET\r\n$4\r\n{a}b\r\n\
                        *5\r\n$7\r\nEVALSHA\r\n$3\r\nyes\r\n$1\r\n1\r\n$3\r\n{a}\r\n$2\r\n17\r\n";
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    }
}
