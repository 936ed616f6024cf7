//! `keys`: manages the API keys that a server accepts. A running server notices changes.

use std::path::PathBuf;

use clap::Subcommand;
use kinfolk_api::Time;
use kinfolk_core::{Clock, SystemClock, Timestamp};
use kinfolk_server::{KeyEntry, KeyFile, NewKey, Rate, Scope};

use super::prelude::*;
use crate::failure::UsageError;

/// Manage the API keys that a server accepts
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk keys add feed-service --scopes read,write --file keys.toml\n  \
    kinfolk keys list --file keys.toml\n  \
    kinfolk keys revoke 3f9a1c22d07b --file keys.toml\n\n\
    Several keys may share a name. To rotate a key: add a new one, deploy it, revoke the old one. A running server\n\
    notices changes within a second. The file stores only hashes: a key is printed once, when it is created.")]
pub(crate) struct Keys {
    #[command(subcommand)]
    action: Action,
    /// The key file [default: auth.keys in the configuration]
    #[arg(long, global = true, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a key and print it
    Add(Add),
    /// List the keys, without their secrets
    List,
    /// Revoke a key
    Revoke {
        /// The id of the key, as printed by list
        id: String,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// The name of the service
    name: String,
    /// What the key allows: read, write, moderate, admin
    #[arg(long, value_delimiter = ',', required = true, value_parser = parse_scope)]
    scopes: Vec<Scope>,
    /// The rate limit, such as '5000/s burst 10000' [default: limits.key]
    #[arg(long, value_name = "RATE")]
    limit: Option<Rate>,
    /// The expiry time, in RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    not_after: Option<Timestamp>,
}

impl Keys {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let path = self.file.or_else(|| context.configuration.auth.keys.clone()).ok_or_else(|| {
            UsageError("name the key file with --file, or set auth.keys in the configuration".to_owned())
        })?;
        match self.action {
            Action::List => {
                let file = KeyFile::read_or_new(&path)?;
                context.print(&KeyList { items: file.entries().iter().map(Item::from).collect() })?;
            }
            Action::Add(Add { name, scopes, limit, not_after }) => {
                let new = NewKey { name, scopes: scopes.into_iter().collect(), limit, not_after };
                let key = KeyFile::update(&path, |file| file.add(new, SystemClock.now()))?;
                context.print(&Added { key })?;
            }
            Action::Revoke { id } => {
                let revoked = KeyFile::update(&path, |file| file.revoke(&id))?;
                context.print(&KeyList { items: vec![Item::from(&revoked)] })?;
            }
        }
        Ok(Outcome::Done)
    }
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| "the scopes are read, write, moderate and admin".to_owned())
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "expected a time such as 2027-01-01T00:00:00Z".to_owned())
}

#[derive(Serialize)]
struct Added {
    key: String,
}

impl Print for Added {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        // Nothing else, so that it can be piped.
        writeln!(out, "{}", self.key)
    }
}

#[derive(Serialize)]
struct KeyList {
    items: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    id: String,
    name: String,
    scopes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<Time>,
}

impl From<&KeyEntry> for Item {
    fn from(entry: &KeyEntry) -> Self {
        Self {
            id: entry.id.clone(),
            name: entry.name.clone(),
            scopes: entry.scopes.iter().map(|scope| scope.name()).collect(),
            created_at: entry.created_at.map(Time),
            limit: entry.limit,
            not_after: entry.not_after.map(Time),
        }
    }
}

impl Print for KeyList {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for Item { id, name, scopes, limit, not_after, .. } in &self.items {
            write!(out, "{id}  {}  {name}", scopes.join(","))?;
            if let Some(limit) = limit {
                write!(out, "  {limit}")?;
            }
            if let Some(not_after) = not_after {
                write!(out, "  until {not_after}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
