//! The API keys that are valid now. How their file is written is not known here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use foldhash::quality::RandomState;
use kinfolk_core::{Clock, Error, Result};
use parking_lot::RwLock;

use super::caller::{Caller, Identity, Standing};
use super::key_file::{self, KeyEntry, KeyFile};
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
    entry: KeyEntry,
    standing: Arc<Standing>,
    budget: Arc<Budget>,
}

/// Names a key whose secret was shown before, without the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyProof {
    /// The public id.
    pub id: Box<str>,
    /// The beginning of the secret's hash: another secret under the same id is another key.
    pub fingerprint: [u8; Self::FINGERPRINT_LEN],
}

impl KeyProof {
    /// The length of a fingerprint.
    pub(crate) const FINGERPRINT_LEN: usize = 16;
}

impl Key {
    fn fingerprint(&self) -> [u8; KeyProof::FINGERPRINT_LEN] {
        let hash = self.entry.hash();
        *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    fn caller(&self) -> Caller {
        Caller {
            identity: Identity::Service(Arc::clone(&self.name)),
            scopes: self.entry.scope_set(),
            budget: Arc::clone(&self.budget),
            expires_at: None,
            standing: Arc::clone(&self.standing),
        }
    }
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
        self.find(credential, Key::caller)
    }

    /// What names a key from now on, if it is valid.
    pub(crate) fn prove(&self, credential: &str) -> Result<KeyProof> {
        self.find(credential, |key| KeyProof {
            id: key.entry.id.as_str().into(),
            fingerprint: key.fingerprint(),
        })
    }

    fn find<T>(&self, credential: &str, result: impl FnOnce(&Key) -> T) -> Result<T> {
        let (id, secret) = key_file::split(credential).ok_or(REFUSED)?;
        let hash = key_file::hash_secret(secret);
        let by_id = self.by_id.read();
        // The comparison of hashes takes the same time wherever they differ.
        by_id.get(id).filter(|key| key.entry.hash() == hash).map(result).ok_or(REFUSED)
    }

    /// The caller of a key that was proved before.
    pub(crate) fn resume(&self, proof: &KeyProof) -> Result<Caller> {
        let by_id = self.by_id.read();
        let key = by_id.get(&proof.id).filter(|key| key.fingerprint() == proof.fingerprint);
        key.map(Key::caller).ok_or(REFUSED)
    }

    /// All keys, as their file describes them, by name.
    pub(crate) fn entries(&self) -> Vec<KeyEntry> {
        let mut entries: Vec<KeyEntry> = self.by_id.read().values().map(|key| key.entry.clone()).collect();
        entries.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        entries
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
            let same_secret = kept.as_ref().is_some_and(|key| key.entry.hash() == entry.hash());
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
            let (name, entry) = (entry.name.as_str().into(), entry.clone());
            by_id.insert(entry.id.as_str().into(), Key { name, entry, standing, budget });
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
