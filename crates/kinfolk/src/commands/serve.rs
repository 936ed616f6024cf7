//! `serve`: a graph over REST and the Redis protocol, until a signal ends it.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;

use crate::answer::Outcome;
use crate::context::Context;
use crate::serve::{Logging, Server};
use crate::settings::ServerFlags;

/// What `serve` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk serve\n  \
    kinfolk serve --data /var/lib/kinfolk --http 0.0.0.0:7400 --auth-keys /etc/kinfolk/keys.toml\n\n\
    The graph is made if there is none. One line on standard error says when it is ready.\n\
    SIGTERM and SIGINT end it cleanly; a second one ends it at once. SIGHUP makes it read keys and certificates\n\
    again, which it also does by itself when they change.")]
pub struct Arguments {
    #[command(flatten)]
    pub flags: ServerFlags,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let server = Server::bind(&context.configuration, context.folder_only()?)?;
        let logging = Logging::start(&context.configuration)?;
        let served = server.run(|ready| {
            // A closed stderr is no reason not to serve.
            let _ = writeln!(io::stderr(), "kinfolk: {ready}");
        });
        logging.end();
        served.map(|()| Outcome::Done)
    }
}
