//! Where the keys of a command are: `COMMAND GETKEYS` for one call, and the specification that proxies and cluster clients
//! read.

use super::super::prelude::*;

/// Replies the keys of a call, with what the command does with each if that is asked for.
pub(super) fn write_keys<S: Store>(call: Arguments<'_>, with_flags: bool, out: &mut Output) -> Result<()> {
    let name = call.get(0).unwrap_or_default();
    let command = Command::<S>::find(name).ok_or_else(|| invalid("Invalid command specified"))?;
    if command.keys.first == 0 {
        return Err(invalid("The command has no key arguments"));
    }
    if !command.takes(call.len()) {
        return Err(invalid("Invalid number of arguments specified for command"));
    }
    let places =
        command.keys.places(call).ok_or_else(|| invalid("Invalid arguments specified for command"))?;
    out.array(places.len());
    for place in places {
        let key = call.get(place).unwrap_or_default();
        if !with_flags {
            out.bulk(key);
            continue;
        }
        out.array(2);
        out.bulk(key);
        let flags = flags(command);
        out.set(flags.len());
        flags.iter().for_each(|flag| out.simple(flag));
    }
    Ok(())
}

/// What a command does with its keys.
fn flags<S: Store>(command: &Command<S>) -> &'static [&'static str] {
    if command.flags.contains(&"write") { &["RW", "access", "update"] } else { &["RO", "access"] }
}

/// Where the keys are, as an array of one map, or of none.
pub(super) fn write_specification<S: Store>(command: &Command<S>, out: &mut Output) {
    let keys = command.keys;
    if keys.first == 0 {
        return out.array(0);
    }
    out.array(1);
    out.map(3);
    out.bulk("flags");
    let flags = flags(command);
    out.set(flags.len());
    flags.iter().for_each(|flag| out.simple(flag));
    out.bulk("begin_search");
    let index = if keys.is_counted { keys.first - 1 } else { keys.first };
    write_search("index", &[("index", i64::from(index))], out);
    out.bulk("find_keys");
    if keys.is_counted {
        write_search("keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", i64::from(keys.step))], out);
    } else {
        // Relative to the first, unless it counts from the end.
        let last =
            if keys.last < 0 { i64::from(keys.last) } else { i64::from(keys.last) - i64::from(keys.first) };
        write_search("range", &[("lastkey", last), ("keystep", i64::from(keys.step)), ("limit", 0)], out);
    }
}

fn write_search(kind: &str, numbers: &[(&str, i64)], out: &mut Output) {
    out.map(2);
    out.bulk("type");
    out.bulk(kind);
    out.bulk("spec");
    out.map(numbers.len());
    for (name, value) in numbers {
        out.bulk(name);
        out.integer(*value);
    }
}
