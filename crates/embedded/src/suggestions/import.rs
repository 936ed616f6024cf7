//! Suggestions that were computed elsewhere, stored for some users.

use std::collections::BTreeMap;

use kinfolk_core::suggestions::{StoredSuggestions, Suggestion};
use kinfolk_core::{Error, Id, IdKind, Result};

use lsm_tree::AbstractTree;

use super::{ComputedSuggestions, record};
use crate::lsm::tree_error;

/// How many batches are stored before all of it is compacted.
const RUNS_MAX: usize = 16;

/// Replaces what is stored for these users, durably.
pub(crate) fn store_computed(
    suggestions: &ComputedSuggestions,
    computed: &[(Id, StoredSuggestions)],
) -> Result<()> {
    let mut rows = BTreeMap::new();
    for (of, found) in computed {
        found.items.iter().try_for_each(|item| require_valid(suggestions.ids, *of, item))?;
        suggestions.ids.require(*of)?;
        let mut key = Vec::with_capacity(16);
        of.push_to(&mut key);
        let record = (!found.items.is_empty()).then(|| record::encode(found.computed_at, &found.items));
        if rows.insert(key, record).is_some() {
            return Err(invalid(format!("user {of} is named twice")));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let Some(_alone) = suggestions.running.try_lock() else {
        return Err(Error::in_use("suggestions are being computed; wait for that"));
    };
    suggestions.store_folder.require()?;
    let tree = suggestions.open_tree()?;
    let mut part = tree.ingestion().map_err(tree_error)?;
    for (key, record) in rows {
        let written = match record {
            Some(record) => part.write(key, record),
            None => part.write_tombstone(key),
        };
        written.map_err(tree_error)?;
    }
    part.finish().map_err(tree_error)?;
    // Each batch is a run: many of them make reads slow, and keep what was replaced.
    if tree.l0_run_count() >= RUNS_MAX { suggestions.compact(&tree) } else { Ok(()) }
}

/// Refuses what no walk finds: a record could not hold it.
fn require_valid(ids: IdKind, of: Id, item: &Suggestion) -> Result<()> {
    ids.require(item.id)?;
    item.via.iter().try_for_each(|&id| ids.require(id))?;
    if item.mutual_count == 0 || !(item.jaccard > 0.0 && item.jaccard <= 1.0) {
        return Err(invalid(format!(
            "what is suggested to {of} has no mutual followees, or a share beyond 0 to 1"
        )));
    }
    Ok(())
}

fn invalid(detail: String) -> Error {
    Error::InvalidRequest { detail }
}
