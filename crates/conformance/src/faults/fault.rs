//! How faults are declared: each with the tests that must catch it. The declarations themselves are in a folder for each port.

/// Declares an enum of faults, each with the tests that must catch it.
macro_rules! declare_faults {
    ($name:ident; $($(#[$says:meta])+ $fault:ident: $($test:expr),+;)+) => {
        /// One mistake that a store makes when asked to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$says])+ $fault,)+
        }

        impl $name {
            /// Every fault with the tests that must catch it, each of them alone: cases of the suite, by their names, or runs of
            /// histories.
            pub const CAUGHT_BY: &'static [(Self, &'static [&'static str])] = &[$((Self::$fault, &[$($test),+]),)+];
        }
    };
}
pub(crate) use declare_faults;

use super::comments::declared::comment_faults;
use super::feeds::declared::feed_faults;
use super::graph::declared::graph_faults;
use super::suggestions::declared::suggestion_faults;

const HISTORIES: &str = "histories";
const CONCURRENT_HISTORIES: &str = "concurrent_histories";
const FEED_HISTORIES: &str = "feed_histories";
const FEED_RESTARTS: &str = "feed_restarts";
const CONCURRENT_FEEDS: &str = "concurrent_feeds";
const COMMENT_HISTORIES: &str = "comment_histories";
const COMMENT_RESTARTS: &str = "comment_restarts";
const CONCURRENT_COMMENTS: &str = "concurrent_comments";

// An enum has to be written in one place, so the lists of the ports are passed from macro to macro. A name that begins with
// "on shards: " is a case that must also catch the fault where events are spread over several shards.
graph_faults! { suggestion_faults feed_faults comment_faults declare_faults Fault; }
