//! What every command is given: the configuration, where to work and how to answer. Made once from the arguments.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use kinfolk_core::graph::GraphSettings;
use kinfolk_server::ServiceSettings;

use crate::answer::Answer;
use crate::failure::UsageError;
use crate::place::{Place, ServerAddress};
use crate::profile::embedded::{Folder, Settings, WallClock};
use crate::progress::Reporter;
use crate::settings::{Configuration, Origin, Texts};
use crate::standard_output::StandardOutput;

/// The settings that hold for every command.
#[derive(Debug)]
pub struct Context {
    /// The effective configuration.
    pub configuration: Configuration,
    /// The same as texts, with their origins.
    pub texts: Texts,
    /// The graph that the command works on.
    pub place: Place,
    /// The folder, for commands that work on nothing else.
    pub folder: Folder,
    /// Whether answers are JSON.
    pub json: bool,
    /// Whether stderr stays empty unless something fails.
    pub quiet: bool,
    /// How long work tells how far it has come.
    pub reporter: Reporter,
}

impl Context {
    /// The context that the settings make up; `settings` are those of a store, which goes by `clock`.
    pub fn new(
        configuration: Configuration,
        texts: Texts,
        (settings, clock): (Settings, WallClock),
    ) -> Result<Self> {
        let folder = Folder {
            path: configuration.data.folder.clone(),
            ids: configuration.data.ids,
            settings,
            clock,
            service: ServiceSettings {
                graph: GraphSettings {
                    following_limit: configuration.graph.following_limit,
                    ..GraphSettings::default()
                },
                suggestions: configuration.suggest.in_requests(),
                comments: configuration.comments.rules(),
                ..ServiceSettings::default()
            },
            everyone: configuration.suggest.for_everyone(),
        };
        let client = &configuration.client;
        let reporter = if client.quiet { Reporter::silent() } else { Reporter::new(client.progress_every.0) };
        Ok(Self {
            place: place(&configuration, &texts, &folder)?,
            folder,
            json: client.json,
            quiet: client.quiet,
            reporter,
            configuration,
            texts,
        })
    }

    /// The folder, for a command that can't ask a server.
    pub fn folder_only(&self) -> Result<&Folder> {
        if matches!(self.texts.origin("client", "url"), Origin::Flag(_)) {
            let message =
                "this works on a folder that no server has open; name it with --data DIR".to_owned();
            return Err(UsageError(message).into());
        }
        Ok(&self.folder)
    }

    /// Prints an answer in the form that was asked for.
    pub fn print(&self, answer: &impl Answer) -> Result<()> {
        let mut out = self.stdout();
        if self.json {
            serde_json::to_writer(&mut out, answer).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            answer.write_plain(&mut out)?;
        }
        Ok(out.flush()?)
    }

    /// Buffered standard output.
    pub fn stdout(&self) -> BufWriter<StandardOutput> {
        BufWriter::with_capacity(64 << 10, StandardOutput::new())
    }
}

/// A folder that was named by flag or variable, else a server. The folder that a file names is the server's.
fn place(configuration: &Configuration, texts: &Texts, folder: &Folder) -> Result<Place> {
    let (data, url) = (texts.origin("data", "folder"), texts.origin("client", "url"));
    if let (Origin::Flag(_), Origin::Flag(_)) = (data, url) {
        let message =
            "--data and --url cannot be used with each other; the graph is at one of them".to_owned();
        return Err(UsageError(message).into());
    }
    let names_folder = matches!(data, Origin::Flag(_) | Origin::Environment(_));
    if names_folder && !matches!(url, Origin::Flag(_)) {
        return Ok(Place::Folder(Box::new(folder.clone())));
    }
    Ok(Place::Server(ServerAddress::new(&configuration.client, texts)?))
}
