//! The context of a command: the configuration, the graph to use and how to print. Created once from the arguments.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use kinfolk_api::WriteOutcome;
use kinfolk_core::Id;

use crate::client::{Client, Endpoint, ServerAddress};
use crate::failure::UsageError;
use crate::print::{Outcome, Print, WriteResult};
use crate::profile::LocalProfile;
use crate::progress::Reporter;
use crate::settings::{CommandFlag, CommandText, Configuration, Fleet, Origin, Texts, TuningArguments};
use crate::standard_output::StandardOutput;

/// The flags of single commands, and the values that they have from variables and the file.
pub(crate) struct CommandSettings {
    pub(crate) flags: Vec<CommandFlag>,
    pub(crate) texts: Vec<CommandText>,
    /// The keys of those that take effect: nothing that was typed overrides them.
    pub(crate) applied: Vec<String>,
}

/// The context of a command.
pub(crate) struct Context {
    /// The effective configuration.
    pub(crate) configuration: Configuration,
    /// The same settings as texts, with their origins.
    pub(crate) texts: Texts,
    /// The flags of single commands.
    pub(crate) command_settings: CommandSettings,
    /// The graph that the command uses.
    pub(crate) endpoint: Endpoint,
    /// The folder, for commands that need one.
    pub(crate) folder: LocalProfile,
    /// The token that covers what the caller has seen.
    pub(crate) token: Option<String>,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Whether stderr stays empty unless the command fails.
    pub(crate) quiet: bool,
    /// Reports the progress of long work.
    pub(crate) reporter: Reporter,
}

impl Context {
    /// Creates the context from the configuration.
    pub(crate) fn new(
        configuration: Configuration,
        texts: Texts,
        command_settings: CommandSettings,
        tuning: &TuningArguments,
    ) -> Result<Self> {
        require_one_profile(&configuration, &texts)?;
        let folder = LocalProfile::new(&configuration, tuning);
        let client = &configuration.client;
        let reporter = if client.quiet { Reporter::silent() } else { Reporter::new(client.progress_every.0) };
        Ok(Self {
            endpoint: endpoint(&configuration, &texts, &folder)?,
            folder,
            token: client.token.clone(),
            json: client.json,
            quiet: client.quiet,
            reporter,
            configuration,
            texts,
            command_settings,
        })
    }

    /// Whether the flag with this key has its value from a variable or the file.
    pub(crate) fn is_configured(&self, key: &str) -> bool {
        self.command_settings.applied.iter().any(|applied| applied == key)
    }

    /// Opens the graph, which must exist, calls it and closes it.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&Client) -> Result<T>) -> Result<T> {
        call_and_close(self.endpoint.open()?.seeing(self.token.as_deref())?, call)
    }

    /// As [`Context::call`], for a write about these users. A folder without a graph gets one.
    pub(crate) fn call_or_create<T>(
        &self,
        users: &[Id],
        call: impl FnOnce(&Client) -> Result<T>,
    ) -> Result<T> {
        call_and_close(self.open_or_create_for(users)?, call)
    }

    /// Opens the graph for a write about these users. A folder without a graph gets one.
    pub(crate) fn open_or_create_for(&self, users: &[Id]) -> Result<Client> {
        self.endpoint.open_or_create_for(users)?.seeing(self.token.as_deref())
    }

    /// The folder, for a command that no server offers.
    pub(crate) fn folder_only(&self) -> Result<&LocalProfile> {
        if self.configuration.fleet.catalog.is_some() {
            let message = "this command needs a folder, and the configuration names a fleet, which has none";
            return Err(UsageError(message.to_owned()).into());
        }
        if matches!(self.texts.origin("client", "url"), Origin::Flag(_)) {
            let message =
                "this command needs a folder that no server has open; name it with --data DIR".to_owned();
            return Err(UsageError(message).into());
        }
        Ok(&self.folder)
    }

    /// Prints a result as JSON or as text.
    pub(crate) fn print(&self, result: &impl Print) -> Result<Outcome> {
        let mut out = self.stdout();
        if self.json {
            serde_json::to_writer(&mut out, result).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            result.write_text(&mut out)?;
        }
        out.flush()?;
        Ok(Outcome::Done)
    }

    /// Prints the result of a write; `message` is its text.
    pub(crate) fn print_written(&self, outcome: WriteOutcome, message: String) -> Result<Outcome> {
        self.print(&WriteResult { outcome, message })
    }

    /// Buffered standard output.
    pub(crate) fn stdout(&self) -> BufWriter<StandardOutput> {
        BufWriter::with_capacity(64 << 10, StandardOutput::new())
    }
}

fn call_and_close<T>(client: Client, call: impl FnOnce(&Client) -> Result<T>) -> Result<T> {
    let result = call(&client)?;
    client.close()?;
    Ok(result)
}

/// What a binary without the fleet profile says about a fleet.
pub(crate) const BUILT_WITHOUT_FLEET: &str = "this binary was built without the fleet profile; build one with 'cargo build --release --features fleet'";

/// Returns an error unless the configuration names a folder or a whole fleet that this binary can use.
fn require_one_profile(configuration: &Configuration, texts: &Texts) -> Result<()> {
    let Fleet { catalog, hosts, .. } = &configuration.fleet;
    let named = match (catalog, hosts.0.is_empty()) {
        (Some(_), _) => texts.origin("fleet", "catalog"),
        (None, false) => texts.origin("fleet", "hosts"),
        (None, true) => return Ok(()),
    };
    if !cfg!(feature = "fleet") {
        anyhow::bail!("{named}: {BUILT_WITHOUT_FLEET}");
    }
    let data = texts.origin("data", "folder");
    let message = if catalog.is_none() {
        format!("{named}: fleet.hosts needs fleet.catalog")
    } else if hosts.0.is_empty() {
        format!("{named}: fleet.catalog needs fleet.hosts")
    } else if *data != Origin::Default {
        format!(
            "{data} names a folder and {named} a fleet, which keeps nothing in a folder: leave out one of them"
        )
    } else {
        return Ok(());
    };
    Err(UsageError(message).into())
}

/// The folder if a flag or variable names one, else the server. A folder named in the configuration file belongs to
/// the server.
fn endpoint(configuration: &Configuration, texts: &Texts, folder: &LocalProfile) -> Result<Endpoint> {
    let (data, url) = (texts.origin("data", "folder"), texts.origin("client", "url"));
    if let (Origin::Flag(_), Origin::Flag(_)) = (data, url) {
        let message = "--data and --url cannot be used together; name the folder or the server".to_owned();
        return Err(UsageError(message).into());
    }
    let names_folder = matches!(data, Origin::Flag(_) | Origin::Environment(_));
    if names_folder && !matches!(url, Origin::Flag(_)) {
        return Ok(Endpoint::Local(Box::new(folder.clone())));
    }
    Ok(Endpoint::Server(ServerAddress::new(&configuration.client, texts)?))
}
