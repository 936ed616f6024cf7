//! Reads a record of `strace -f -xx`: every call with its arguments, and the order in which calls began and ended.
//! Knows nothing of what the calls mean; see `disk`.

use std::collections::HashMap;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<Argument>,
    /// What it returned; negative for an error, none if the process ended before.
    pub result: Option<i64>,
    pub thread: u32,
    /// Whether the tracer made it fail.
    pub injected: bool,
}

/// An argument: text and data decoded, anything else as printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    Bytes(Vec<u8>),
    Word(String),
}

/// What happened next. A call that was not interrupted begins and ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Begin(usize),
    End(usize),
    /// A thread ended, with this status if it was in order.
    Exit(Option<i32>),
}

/// A whole record.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub calls: Vec<Call>,
    pub events: Vec<Event>,
}

impl Call {
    /// An argument that is a number, or a constant's name.
    pub fn word(&self, index: usize) -> &str {
        match self.arguments.get(index) {
            Some(Argument::Word(word)) => word,
            _ => "",
        }
    }

    pub fn integer(&self, index: usize) -> Option<i64> {
        let word = self.word(index);
        match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    }

    /// The data or the path of an argument.
    pub fn bytes(&self, index: usize) -> &[u8] {
        match self.arguments.get(index) {
            Some(Argument::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }

    pub fn succeeded(&self) -> bool {
        self.result.is_some_and(|result| result >= 0)
    }
}

impl Trace {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut trace = Self::default();
        let mut unfinished: HashMap<u32, (usize, String)> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            trace
                .line(line, &mut unfinished)
                .map_err(|problem| format!("line {}: {problem}: {}", number + 1, shortened(line)))?;
        }
        for (thread, (index, head)) in unfinished {
            trace.calls[index] = Call { thread, result: None, ..parse_call(&format!("{head}) = ?"))? };
        }
        Ok(trace)
    }

    fn line(&mut self, line: &str, unfinished: &mut HashMap<u32, (usize, String)>) -> Result<(), String> {
        let (thread, rest) = line.split_once(' ').ok_or("no thread")?;
        let thread: u32 = thread.parse().map_err(|_| "the thread is not a number")?;
        let rest = rest.trim_start();
        if let Some(exit) = rest.strip_prefix("+++ ") {
            let status = exit.strip_prefix("exited with ").and_then(|text| text.split(' ').next());
            self.events.push(Event::Exit(status.and_then(|text| text.parse().ok())));
        } else if rest.starts_with("--- ") {
            // A signal: of no interest here.
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, tail) = resumed.split_once(" resumed>").ok_or("a resumption without a name")?;
            let (index, head) = unfinished.remove(&thread).ok_or("resumes what was not begun")?;
            self.calls[index] = Call { thread, ..parse_call(&format!("{head}{tail}"))? };
            self.events.push(Event::End(index));
        } else if let Some(head) = rest.strip_suffix(" <unfinished ...>") {
            let index = self.calls.len();
            let name = head.split('(').next().unwrap_or_default().to_owned();
            self.calls.push(Call { name, arguments: Vec::new(), result: None, thread, injected: false });
            unfinished.insert(thread, (index, head.trim_end().to_owned()));
            self.events.push(Event::Begin(index));
        } else {
            let index = self.calls.len();
            self.calls.push(Call { thread, ..parse_call(rest)? });
            self.events.extend([Event::Begin(index), Event::End(index)]);
        }
        Ok(())
    }
}

/// Reads `name(arguments) = result`.
fn parse_call(text: &str) -> Result<Call, String> {
    let (name, rest) = text.split_once('(').ok_or("not a call")?;
    let (arguments, tail) = parse_arguments(rest)?;
    let result = tail.trim_start().strip_prefix("= ").ok_or("no result")?;
    let word = result.split(' ').next().unwrap_or_default();
    let result_value = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => word.parse().ok(),
    };
    if result_value.is_none() && word != "?" {
        return Err(format!("a result of {word:?}"));
    }
    Ok(Call {
        name: name.to_owned(),
        arguments,
        result: result_value,
        thread: 0,
        injected: result.contains("(INJECTED)"),
    })
}

/// Splits at the commas outside of brackets, up to the bracket that closes the call; returns what follows it.
/// Strings hold nothing but `\xNN`, so that brackets and commas in data cannot mislead.
fn parse_arguments(text: &str) -> Result<(Vec<Argument>, &str), String> {
    let (mut arguments, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if !text[start..at].trim().is_empty() {
                    arguments.push(parse_argument(text[start..at].trim())?);
                }
                return Ok((arguments, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1).ok_or("brackets do not match")?,
            b',' if depth == 0 => {
                arguments.push(parse_argument(text[start..at].trim())?);
                start = at + 1;
            }
            _ => {}
        }
    }
    Err("the call is not closed".to_owned())
}

/// Decodes the strings in an argument; those of a list of buffers are joined.
fn parse_argument(text: &str) -> Result<Argument, String> {
    if !text.contains('"') {
        return Ok(Argument::Word(text.to_owned()));
    }
    if text.contains("\"...") {
        return Err("data was cut short by the tracer".to_owned());
    }
    let mut bytes = Vec::new();
    for quoted in text.split('"').skip(1).step_by(2) {
        for digits in quoted.split("\\x").skip(1) {
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| "a string is not in hexadecimal")?);
        }
    }
    Ok(Argument::Bytes(bytes))
}

fn shortened(line: &str) -> String {
    line.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_calls_with_data_results_and_errors() {
        let trace = Trace::parse(
            "10    openat(AT_FDCWD, \"\\x2f\\x61\", O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 3\n\
             10    writev(3, [{iov_base=\"\\x61\\x29\", iov_len=2}, {iov_base=\"\\x2c\", iov_len=1}], 2) = 3\n\
             10    fsync(3) = -1 EIO (Input/output error) (INJECTED)\n\
             10    --- SIGCHLD {si_signo=SIGCHLD, si_status=0} ---\n\
             10    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000\n\
             10    +++ exited with 1 +++\n",
        )
        .unwrap();
        let names: Vec<&str> = trace.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["openat", "writev", "fsync", "mmap"]);
        assert_eq!(trace.calls[0].bytes(1), b"/a");
        assert_eq!(trace.calls[0].word(2), "O_RDWR|O_CREAT|O_CLOEXEC");
        assert_eq!((trace.calls[0].integer(0), trace.calls[0].result), (None, Some(3)));
        assert_eq!(trace.calls[1].bytes(1), b"a),");
        assert!(trace.calls[2].injected && !trace.calls[2].succeeded());
        assert_eq!(trace.events.last(), Some(&Event::Exit(Some(1))));
    }

    #[test]
    fn joins_what_threads_interrupted() {
        let trace = Trace::parse(
            "10    read(0,  <unfinished ...>\n\
             11    fdatasync(4 <unfinished ...>\n\
             10    <... read resumed>\"\\x61\", 8192) = 1\n\
             11    <... fdatasync resumed>) = 0\n\
             10    write(1, \"\\x62\", 1 <unfinished ...>\n\
             10    +++ killed by SIGKILL +++\n",
        )
        .unwrap();
        assert_eq!(trace.calls[0].bytes(1), b"a");
        assert_eq!((trace.calls[1].integer(0), trace.calls[1].result), (Some(4), Some(0)));
        assert_eq!((trace.calls[2].bytes(1), trace.calls[2].result), (b"b".as_slice(), None));
        use Event::{Begin, End, Exit};
        assert_eq!(trace.events, [Begin(0), Begin(1), End(0), End(1), Begin(2), Exit(None)]);
    }

    #[test]
    fn refuses_data_that_was_cut() {
        let problem = Trace::parse("10 write(3, \"\\x61\"..., 9) = 9\n").unwrap_err();
        assert!(problem.contains("cut short"), "{problem}");
    }
}
