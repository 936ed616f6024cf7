//! A file of keys that may change while the server runs, and the keys that were last read from it. What such a file
//! may hold is in `keys` and `secret`.

use std::path::Path;
use std::sync::Arc;

use jsonwebtoken::Algorithm;
use kinfolk_core::{Clock, Result};
use parking_lot::{RwLock, RwLockReadGuard};

use super::keys::TokenKeys;
use crate::watched_file::WatchedFile;

/// What a file must hold. It is never guessed from the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    PublicKeys,
    SharedSecrets,
}

pub(super) struct KeySource {
    kind: SourceKind,
    file: WatchedFile,
    algorithms: Vec<Algorithm>,
    clock: Arc<dyn Clock>,
    keys: RwLock<TokenKeys>,
}

impl KeySource {
    /// Reads the keys; a file that can't be used is refused.
    pub(crate) fn load(
        kind: SourceKind,
        path: &Path,
        algorithms: &[Algorithm],
        clock: &Arc<dyn Clock>,
    ) -> Result<Self> {
        let source = Self {
            kind,
            file: WatchedFile::new(path),
            algorithms: algorithms.to_vec(),
            clock: Arc::clone(clock),
            keys: RwLock::default(),
        };
        source.reload()?;
        Ok(source)
    }

    /// What the log calls it.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            SourceKind::PublicKeys => "public keys of tokens",
            SourceKind::SharedSecrets => "shared secrets of tokens",
        }
    }

    /// The keys that are valid now.
    pub(crate) fn keys(&self) -> RwLockReadGuard<'_, TokenKeys> {
        self.keys.read()
    }

    /// Reads the keys again, even if the file has not changed. The keys stay as they are if the file can't be used.
    pub(crate) fn reload(&self) -> Result<()> {
        self.apply(&self.file.read()?)
    }

    /// As [`KeySource::reload`], if the file has changed. Returns whether it has.
    pub(crate) fn reload_if_changed(&self) -> Result<bool> {
        self.file.apply_if_changed(|content| self.apply(content))
    }

    fn apply(&self, content: &[u8]) -> Result<()> {
        let parsed = match self.kind {
            SourceKind::PublicKeys => TokenKeys::parse_public(content, &self.algorithms, &self.clock),
            SourceKind::SharedSecrets => TokenKeys::parse_secrets(content, &self.algorithms, &self.clock),
        };
        let mut keys = parsed.map_err(|problem| self.file.invalid(problem))?;
        let mut present = self.keys.write();
        keys.succeed(&present);
        *present = keys;
        Ok(())
    }
}
