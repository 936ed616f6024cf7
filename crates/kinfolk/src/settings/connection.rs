//! Connection strings of databases, which may hold passwords: nothing prints those.

use std::collections::BTreeMap;
use std::fmt;

use super::value::{Value, quoted};

/// What stands in place of a password.
const HIDDEN: &str = "***";

/// The connection string of a PostgreSQL database: a URL, or `key=value` pairs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ConnectionString(pub(crate) String);

impl ConnectionString {
    /// The string without its passwords.
    fn redacted(&self) -> String {
        if self.0.contains("://") { redacted_url(&self.0) } else { redacted_pairs(&self.0) }
    }
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.redacted())
    }
}

impl Value for ConnectionString {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn literal(&self) -> String {
        quoted(&self.redacted())
    }
}

/// A password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HIDDEN)
    }
}

impl Value for Secret {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn literal(&self) -> String {
        quoted(if self.0.is_empty() { "" } else { HIDDEN })
    }
}

/// Connection strings by the names of hosts. As one text: `name=connection string`, separated by semicolons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts(pub(crate) BTreeMap<String, ConnectionString>);

impl Value for Hosts {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected NAME=CONNECTION, separated by semicolons, or a table of the file";
        let mut hosts = BTreeMap::new();
        for host in text.split(';').map(str::trim).filter(|host| !host.is_empty()) {
            let (name, connection) = host.split_once('=').ok_or(expected)?;
            let (name, connection) = (name.trim(), connection.trim());
            let is_name = |name: &str| {
                !name.is_empty()
                    && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
            };
            if !is_name(name) || connection.is_empty() {
                return Err(format!("{expected}; a name has letters, digits and any of - _ ."));
            }
            if hosts.insert(name.to_owned(), ConnectionString(connection.to_owned())).is_some() {
                return Err(format!("host {name} is there twice"));
            }
        }
        Ok(Self(hosts))
    }

    fn text(&self) -> String {
        let hosts = self.0.iter().map(|(name, connection)| format!("{name}={}", connection.0));
        hosts.collect::<Vec<_>>().join("; ")
    }

    fn literal(&self) -> String {
        let hosts =
            self.0.iter().map(|(name, connection)| format!("{} = {}", quoted(name), connection.literal()));
        format!("{{ {} }}", hosts.collect::<Vec<_>>().join(", "))
    }
}

/// Hides the password before the host, and a parameter of that name.
fn redacted_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // The last sign, although the first one ends the password: it may have been left unescaped by mistake.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((credentials, rest)) => match credentials.split_once(':') {
            Some((user, _)) => (format!("{user}:{HIDDEN}@"), rest),
            None => (format!("{credentials}@"), rest),
        },
        None => (String::new(), rest),
    };
    let (address, parameters) = rest.split_once('?').map_or((rest, None), |(rest, all)| (rest, Some(all)));
    let mut out = format!("{scheme}://{user}{address}");
    for (at, parameter) in parameters.into_iter().flat_map(|all| all.split('&')).enumerate() {
        out.push(if at == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, _)) if name.to_ascii_lowercase().contains("pass") => {
                out.push_str(&format!("{name}={HIDDEN}"));
            }
            _ => out.push_str(parameter),
        }
    }
    out
}

/// Hides all that follows `password`: a value may have spaces and quotes, and other keys can come first.
fn redacted_pairs(pairs: &str) -> String {
    match pairs.to_ascii_lowercase().find("password") {
        Some(start) => format!("{}password={HIDDEN}", pairs.get(..start).unwrap_or_default()),
        None => pairs.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        for (text, shown) in [
            ("postgres://me:secret@db/kinfolk", "postgres://me:***@db/kinfolk"),
            (
                "postgres://me@db:5432/kinfolk?sslmode=require",
                "postgres://me@db:5432/kinfolk?sslmode=require",
            ),
            ("postgres://me:se:cr@et@db/kinfolk", "postgres://me:***@db/kinfolk"),
            (
                "postgres://db/k?user=me&password=secret&sslmode=require",
                "postgres://db/k?user=me&password=***&sslmode=require",
            ),
            ("host=db user=me", "host=db user=me"),
            ("host=db PASSWORD = 'a secret' user=me", "host=db password=***"),
        ] {
            let connection = ConnectionString(text.to_owned());
            assert_eq!(connection.literal(), format!("{shown:?}"));
            assert_eq!(format!("{connection:?}"), shown);
        }
    }

    #[test]
    fn hosts_are_a_table_or_a_text() {
        let text = "a=postgres://me:secret@db/a; b=host=db user=me";
        let hosts = Hosts::parse(text).unwrap();
        assert_eq!(hosts.text(), text);
        assert_eq!(hosts.literal(), r#"{ "a" = "postgres://me:***@db/a", "b" = "host=db user=me" }"#);
        assert!(!format!("{hosts:?}").contains("secret"));
        for wrong in ["postgres", "a b=postgres://db", "a=", "a=x; a=y"] {
            assert!(Hosts::parse(wrong).is_err(), "{wrong}");
        }
    }
}
