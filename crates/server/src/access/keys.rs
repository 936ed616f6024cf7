//! The API keys that are valid now. How their file is written is not known here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use foldhash::quality::RandomState;
use kinfolk_core::{Clock, Error, Result};
use parking_lot::RwLock;

use super::caller::{Caller, Identity, Standing};
use super::key_file::{self, KeyFile};
use super::scope::Scopes;
use crate::limits::{Budget, BudgetName, Rate, SharedBudgets};
use crate::watched_file::WatchedFile;

/// Every refusal has the same message, so that it does not reveal which ids exist.
const REFUSED: Error = Error::Unauthenticated { detail: "the API key is not valid" };

/// Keys by their public id.
type KeysById = HashMap<Box<str>, Key, RandomState>;

pub(super) struct Keys {
    file: WatchedFile,
    default_limit: Option<Rate>,
    clock: Arc<dyn Clock>,
    shared_budgets: Option<Arc<SharedBudgets>>,
    by_id: RwLock<KeysById>,
}

struct Key {
    name: Arc<str>,
    hash: blake3::Hash,
    scopes: Scopes,
    standing: Arc<Standing>,
    budget: Arc<Budget>,
}

impl Keys {
    /// Reads the keys; a file that can't be read is refused.
    pub(crate) fn load(
        path: &Path,
        default_limit: Option<Rate>,
        clock: Arc<dyn Clock>,
        shared_budgets: Option<Arc<SharedBudgets>>,
    ) -> Result<Self> {
        let file = WatchedFile::new(path);
        let keys = Self { file, default_limit, clock, shared_budgets, by_id: RwLock::default() };
        keys.apply(&keys.file.read()?)?;
        Ok(keys)
    }

    /// The caller that a key belongs to.
    pub(crate) fn authenticate(&self, credential: &str) -> Result<Caller> {
        let (id, secret) = key_file::split(credential).ok_or(REFUSED)?;
        let hash = key_file::hash_secret(secret);
        let by_id = self.by_id.read();
        // The comparison of hashes takes the same time wherever they differ.
        let key = by_id.get(id).filter(|key| key.hash == hash).ok_or(REFUSED)?;
        Ok(Caller {
            identity: Identity::Service(Arc::clone(&key.name)),
            scopes: key.scopes,
            budget: Arc::clone(&key.budget),
            expires_at: None,
            standing: Arc::clone(&key.standing),
        })
    }

    /// Reads the keys again, even if the file has not changed. The keys stay as they are if the file can't be read.
    pub(crate) fn reload(&self) -> Result<()> {
        self.apply(&self.file.read()?)
    }

    /// As [`Keys::reload`], if the file has changed. Returns whether it has.
    pub(crate) fn reload_if_changed(&self) -> Result<bool> {
        self.file.apply_if_changed(|content| self.apply(content))
    }

    fn apply(&self, content: &[u8]) -> Result<()> {
        let file = KeyFile::parse(content).map_err(|problem| self.file.invalid(problem))?;
        let mut by_id = self.by_id.write();
        let mut former = std::mem::take(&mut *by_id);
        for entry in file.entries() {
            let rate = entry.limit.or(self.default_limit);
            let kept = former.remove(entry.id.as_str());
            let same_secret = kept.as_ref().is_some_and(|key| key.hash == entry.hash());
            // Connections with this key share its standing and its budget.
            let (standing, budget) = match kept {
                Some(key) if same_secret => (key.standing, key.budget),
                replaced => {
                    replaced.iter().for_each(|key| key.standing.revoke());
                    let standing = Standing::new(Arc::clone(&self.clock), entry.scope_set(), entry.not_after);
                    (Arc::new(standing), self.new_budget(&entry.id, rate))
                }
            };
            standing.update(entry.scope_set(), entry.not_after);
            budget.set_rate(rate);
            let (name, hash, scopes) = (entry.name.as_str().into(), entry.hash(), entry.scope_set());
            by_id.insert(entry.id.as_str().into(), Key { name, hash, scopes, standing, budget });
        }
        former.values().for_each(|key| key.standing.revoke());
        Ok(())
    }

    fn new_budget(&self, id: &str, rate: Option<Rate>) -> Arc<Budget> {
        match &self.shared_budgets {
            Some(shared) => shared.budget(rate, BudgetName::Key(id.into())),
            None => Arc::new(Budget::new(rate)),
        }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Keys").field("file", &self.file.path()).finish_non_exhaustive()
    }
}
