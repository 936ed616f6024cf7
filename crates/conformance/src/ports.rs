//! What groups of cases ask of a store: the graph, and what is on top of it.

use kinfolk_core::suggestions::SuggestionStore;
use kinfolk_core::{ContentStore, GraphStore};

/// A store that also keeps suggestions.
pub trait SuggestionPorts: GraphStore + SuggestionStore {}

impl<S: GraphStore + SuggestionStore> SuggestionPorts for S {}

/// A store that also keeps posts, feeds and comments.
pub trait ContentPorts: GraphStore + ContentStore {}

impl<S: GraphStore + ContentStore> ContentPorts for S {}

/// A store that has everything.
pub trait AllPorts: SuggestionPorts + ContentPorts {}

impl<S: SuggestionPorts + ContentPorts> AllPorts for S {}
