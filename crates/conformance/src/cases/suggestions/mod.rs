//! Cases of suggestions: of the port, and of the operations on top of it.

pub(super) mod candidates;
mod everyone;
mod suggest;

use super::Case;
use crate::ports::SuggestionPorts;

pub(super) fn cases<S: SuggestionPorts>() -> Vec<Case<S>> {
    [candidates::cases(), everyone::cases(), suggest::cases()].concat()
}
