//! The arguments of a command, from the line that documents them: `key cursor [MATCH pattern] [COUNT count]`. `COMMAND DOCS`
//! describes them in the structure that `redis-cli` and others build their hints from. Calls are not parsed here.
//!
//! - A word in lower case is an argument, one in upper case a token that stands for itself.
//! - Square brackets enclose what may be left out; `member [member …]` is an argument that may be repeated.
//! - `ON|OFF` are alternatives.

use super::reply::Output;

/// An argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument {
    name: String,
    kind: &'static str,
    /// The token that comes before it.
    token: Option<String>,
    is_optional: bool,
    is_multiple: bool,
    /// The alternatives, or the parts of a block.
    parts: Vec<Self>,
}

/// Replies the arguments of a line as an array of maps.
pub(super) fn write_arguments(syntax: &str, out: &mut Output) {
    write_all(&parse(syntax), out);
}

fn write_all(arguments: &[Argument], out: &mut Output) {
    out.array(arguments.len());
    for argument in arguments {
        write_one(argument, out);
    }
}

fn write_one(argument: &Argument, out: &mut Output) {
    let Argument { name, kind, token, is_optional, is_multiple, parts } = argument;
    // What clients show for an argument that stands for a value.
    let has_value = !matches!(*kind, "pure-token" | "oneof" | "block");
    let fields = [
        true,
        true,
        has_value,
        *kind == "key",
        token.is_some(),
        *is_optional || *is_multiple,
        !parts.is_empty(),
    ];
    out.map(fields.iter().filter(|&&is_present| is_present).count());
    out.bulk("name");
    out.bulk(name);
    out.bulk("type");
    out.bulk(kind);
    if has_value {
        out.bulk("display_text");
        out.bulk(name);
    }
    if *kind == "key" {
        out.bulk("key_spec_index");
        out.integer(0);
    }
    if let Some(token) = token {
        out.bulk("token");
        out.bulk(token);
    }
    if *is_optional || *is_multiple {
        let flags = [("optional", *is_optional), ("multiple", *is_multiple)];
        out.bulk("flags");
        out.array(flags.iter().filter(|(_, is_set)| *is_set).count());
        flags.iter().filter(|(_, is_set)| *is_set).for_each(|(flag, _)| out.simple(flag));
    }
    if !parts.is_empty() {
        out.bulk("arguments");
        write_all(parts, out);
    }
}

fn parse(syntax: &str) -> Vec<Argument> {
    let spaced = syntax.replace('[', " [ ").replace(']', " ] ");
    parse_until_end(&mut spaced.split_whitespace())
}

/// Reads up to the bracket that closes, or to the end.
fn parse_until_end<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "]" => break,
            "[" => {
                let inner = parse_until_end(words);
                match (inner.as_slice(), arguments.last_mut()) {
                    // `member [member …]`
                    ([repeated], Some(last)) if repeated.is_multiple && repeated.name == last.name => {
                        last.is_multiple = true;
                    }
                    _ => arguments
                        .extend(enclosed(inner).map(|argument| Argument { is_optional: true, ..argument })),
                }
            }
            "…" => {
                if let Some(last) = arguments.last_mut() {
                    last.is_multiple = true;
                }
            }
            word => arguments.push(one(word)),
        }
    }
    arguments
}

/// What brackets enclose, as one argument: a token with its value, or a block of several.
fn enclosed(mut inner: Vec<Argument>) -> Option<Argument> {
    let token = inner
        .first()
        .filter(|first| first.kind == "pure-token" && inner.len() > 1)
        .and_then(|first| first.token.clone());
    if token.is_some() {
        inner.remove(0);
    }
    if inner.len() <= 1 {
        let only = inner.pop()?;
        return Some(Argument { token: token.or(only.token.clone()), ..only });
    }
    let name = token.as_ref().or(inner.first().map(|first| &first.name)).map(|name| name.to_lowercase())?;
    Some(Argument { name, kind: "block", token, is_optional: false, is_multiple: false, parts: inner })
}

fn one(word: &str) -> Argument {
    let plain = |name: &str, kind| Argument {
        name: name.to_lowercase(),
        kind,
        token: (kind == "pure-token").then(|| name.to_owned()),
        is_optional: false,
        is_multiple: false,
        parts: Vec::new(),
    };
    if word.contains('|') {
        return Argument { parts: word.split('|').map(one).collect(), ..plain(word, "oneof") };
    }
    let is_token = word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '-');
    match word {
        _ if is_token => plain(word, "pure-token"),
        "key" => plain(word, "key"),
        "pattern" => plain(word, "pattern"),
        "count" | "limit" | "numkeys" | "milliseconds" | "client-id" | "protover" | "index" => {
            plain(word, "integer")
        }
        _ => plain(word, "string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments as text: `name:type`, tokens and flags behind it.
    fn shown(arguments: &[Argument]) -> String {
        let show = |argument: &Argument| {
            let token = argument.token.as_ref().map_or(String::new(), |token| format!("={token}"));
            let parts = if argument.parts.is_empty() {
                String::new()
            } else {
                format!("({})", shown(&argument.parts))
            };
            let optional = if argument.is_optional { "?" } else { "" };
            let multiple = if argument.is_multiple { "*" } else { "" };
            format!("{}:{}{token}{parts}{optional}{multiple}", argument.name, argument.kind)
        };
        arguments.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lines_are_arguments() {
        for (syntax, arguments) in [
            ("", ""),
            ("key member", "key:key member:string"),
            ("key member [member …]", "key:key member:string*"),
            ("numkeys key [key …] [LIMIT limit]", "numkeys:integer key:key* limit:integer=LIMIT?"),
            ("[section …]", "section:string?*"),
            ("ON|OFF", "on|off:oneof(on:pure-token=ON off:pure-token=OFF)"),
            ("[NOW] user", "now:pure-token=NOW? user:string"),
            (
                "[protover [AUTH username password] [SETNAME name]]",
                "protover:block(protover:integer auth:block=AUTH(username:string password:string)? name:string=SETNAME?)?",
            ),
            ("[ID client-id [client-id …]]", "client-id:integer=ID?*"),
        ] {
            assert_eq!(shown(&parse(syntax)), arguments, "{syntax}");
        }
    }
}
