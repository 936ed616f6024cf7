//! Converts settings to those of the services of `kinfolk-core`.

use std::thread::available_parallelism;
use std::time::Duration;

use kinfolk_core::comments::CommentSettings;
use kinfolk_core::graph::GraphSettings;
use kinfolk_core::suggestions::{SuggestionRunRequest, SuggestionSettings, WalkBounds};
use kinfolk_server::ServiceSettings;

use super::{Comments, Configuration, Suggest};

/// The maximum size of a character in JSON: two escapes of six bytes.
const CHAR_BYTES_MAX: usize = 12;
/// The rest of a request with a comment.
const ENVELOPE_BYTES_MAX: usize = 4 << 10;

/// How long a process of a fleet serves on when it stops: it is one of several, behind something that asks whether they are ready.
const FLEET_DRAIN: Duration = Duration::from_secs(5);

impl Configuration {
    /// How long to keep serving after the readiness check starts to fail.
    pub(crate) fn drain(&self) -> Duration {
        let is_balanced = self.fleet.catalog.is_some() && self.server.role.serves_api();
        let default = if is_balanced { FLEET_DRAIN } else { Duration::ZERO };
        self.server.drain.map_or(default, |drain| drain.0)
    }

    /// The settings of the services.
    pub(crate) fn service_settings(&self) -> ServiceSettings {
        let Self { graph, suggest, comments, .. } = self;
        ServiceSettings {
            graph: GraphSettings { following_limit: graph.following_limit, ..GraphSettings::default() },
            suggestions: SuggestionSettings {
                per_node: suggest.per_node.0,
                fresh_for: suggest.fresh.0,
                ..SuggestionSettings::default()
            },
            comments: CommentSettings {
                body_chars_max: comments.body_chars_max.0 as usize,
                // The setting is limited to far less.
                depth_max: u8::try_from(comments.depth_max.0).unwrap_or(u8::MAX),
                ..CommentSettings::default()
            },
            ..ServiceSettings::default()
        }
    }
}

impl Suggest {
    /// The default computation for all users.
    pub(crate) fn for_everyone(&self) -> SuggestionRunRequest {
        let cores = || available_parallelism().map_or(1, std::num::NonZero::get);
        SuggestionRunRequest {
            bounds: WalkBounds {
                per_node: bound(self.batch_per_node),
                results: (self.keep.0 as usize).min(WalkBounds::RESULTS_MAX),
                ranking: self.ranking,
            },
            threads: self.threads.map_or_else(cores, |threads| threads.0 as usize),
            afresh: false,
        }
    }
}

impl Comments {
    /// The maximum size in bytes of a request with a comment.
    pub(crate) fn request_bytes_max(&self) -> usize {
        self.body_chars_max.0 as usize * CHAR_BYTES_MAX + ENVELOPE_BYTES_MAX
    }
}

/// A bound: 0 for none.
pub(crate) fn bound(number: u32) -> Option<usize> {
    (number > 0).then_some(number as usize)
}
