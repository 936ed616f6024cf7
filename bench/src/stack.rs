//! A real server of its own for a comparison: started by `scripts/stack` in a folder, stopped with its guard.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::run;

const SCRIPT: &str = "scripts/stack";

/// A running server, or several that the script starts together.
#[derive(Debug)]
pub struct Stack {
    server: &'static str,
    folder: PathBuf,
    facts: HashMap<String, String>,
}

impl Stack {
    /// Starts a server with its settings on an empty folder.
    pub fn start(server: &'static str, folder: &Path, settings: &[&str]) -> Result<Self> {
        if !Path::new(SCRIPT).exists() {
            bail!("{SCRIPT} is not here: run from the root of the repository, or leave the peers out");
        }
        // What an interrupted run left behind is stopped and removed by the script.
        run(Command::new(SCRIPT).args([server, "stop"]).arg(folder))?;
        let printed = run(Command::new(SCRIPT).args([server, "start"]).arg(folder).args(settings))?;
        let facts = printed.lines().filter_map(|line| line.split_once('='));
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { server, folder: folder.to_owned(), facts })
    }

    /// What the script has printed about the server.
    pub fn fact(&self, name: &str) -> Result<&str> {
        let fact = self.facts.get(name).map(String::as_str);
        fact.with_context(|| format!("{SCRIPT} printed no {name}"))
    }

    pub fn facts(&self) -> &HashMap<String, String> {
        &self.facts
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new(SCRIPT).args([self.server, "stop"]).arg(&self.folder)) {
            eprintln!("{error:#}");
        }
    }
}
