//! `serve`: serves a graph over REST and the Redis protocol until a signal stops it.

use super::prelude::*;
use crate::profile::Profile;
#[cfg(feature = "fleet")]
use crate::profile::fleet::FleetProfile;
use crate::serve::{Logging, Server};
use crate::settings::ServerFlags;

/// Serve a graph over REST and the Redis protocol
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk serve\n  \
    kinfolk serve --data /var/lib/kinfolk --http 0.0.0.0:7400 --auth-keys /etc/kinfolk/keys.toml\n  \
    kinfolk serve --config fleet.toml --role api\n\n\
    The graph is created if there is none. With the section fleet in the configuration, the server is a process of that\n\
    fleet, in the role --role. A line on standard error says when the server is ready.\n\
    SIGTERM and SIGINT stop it gracefully; a second one stops it at once. SIGHUP reloads keys and certificates, which\n\
    are also reloaded when they change.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) flags: ServerFlags,
}

impl Serve {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        #[cfg(feature = "fleet")]
        if let Some(fleet) = FleetProfile::of(context) {
            return serve(context, &fleet);
        }
        serve(context, context.folder_only()?)
    }
}

fn serve<P: Profile>(context: &Context, profile: &P) -> Result<Outcome> {
    let server = Server::bind(&context.configuration, profile)?;
    let logging = Logging::start(&context.configuration)?;
    let served = server.run(|ready| {
        // A closed stderr is no reason not to serve.
        let _ = writeln!(io::stderr(), "kinfolk: {ready}");
    });
    logging.end();
    served.map(|()| Outcome::Done)
}
