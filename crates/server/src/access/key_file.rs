//! The file of API keys: reading, checking, adding, revoking, writing. Who may enter with a key is not decided here.
//!
//! ```toml
//! version = 1
//!
//! [[key]]
//! id = "3f9a1c22d07b"
//! name = "feed-service"
//! scopes = ["read", "write"]
//! hash = "…"                            # of the secret: 64 hexadecimal digits
//! created_at = "2026-11-15T08:00:00.000Z"
//! limit = "5000/s burst 10000"          # optional
//! not_after = "2027-11-15T00:00:00.000Z"  # optional
//! ```
//!
//! A key is `kf_<id>_<secret>`. The id is public and finds the entry. The secret is 256 random bits, shown once and
//! stored only as its BLAKE3 hash: slow password hashes protect what people make up, and nobody guesses 256 bits.
//! Several keys may have one name, so that a service gets a new key before its old one is revoked.

use std::fs;
use std::io;
use std::path::Path;

use kinfolk_core::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::file_lock::{self, FileLock};
use super::scope::{Scope, Scopes};
use crate::limits::Rate;

const VERSION: u32 = 1;
const PREFIX: &str = "kf_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;
const NAME_LEN_MAX: usize = 64;
const HEADER: &str = "# API keys of a Kinfolk server. Secrets are not here, only their hashes.\n\
                      # A running server sees changes by itself.\n";

/// One key, as the file has it. The secret is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// The public part of the key.
    pub id: String,
    /// The service that it is for.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    hash: HexHash,
    /// When it was created.
    #[serde(default, with = "optional_timestamp", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Its rate limit; without one, the limit of all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Rate>,
    /// When it stops working.
    #[serde(default, with = "optional_timestamp", skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
}

impl KeyEntry {
    /// What the key allows, as a set.
    pub fn scope_set(&self) -> Scopes {
        self.scopes.iter().copied().collect()
    }

    pub(super) fn hash(&self) -> blake3::Hash {
        self.hash.0
    }
}

/// The properties of a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The service that it is for.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// Its rate limit; without one, the limit of all keys.
    pub limit: Option<Rate>,
    /// When it stops working.
    pub not_after: Option<Timestamp>,
}

/// All keys of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    version: u32,
    #[serde(default, rename = "key")]
    entries: Vec<KeyEntry>,
}

impl Default for KeyFile {
    fn default() -> Self {
        Self { version: VERSION, entries: Vec::new() }
    }
}

impl KeyFile {
    /// Reads the file; one that is not there yet, or is empty because its first key is about to be added, has no keys.
    pub fn read_or_new(path: &Path) -> Result<Self> {
        let invalid =
            |problem: String| Error::InvalidInput { detail: format!("{}: {problem}", path.display()) };
        match fs::read(path) {
            Ok(content) if content.is_empty() => Ok(Self::default()),
            Ok(content) => Self::parse(&content).map_err(invalid),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(invalid(format!("can't be read: {error}"))),
        }
    }

    /// Reads what a file contains. The problem does not quote it: somebody may have put a secret there.
    pub(super) fn parse(content: &[u8]) -> std::result::Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "the file is not UTF-8".to_owned())?;
        let file: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            format!("line {}: {}", before.matches('\n').count() + 1, error.message())
        })?;
        if file.version != VERSION {
            return Err(format!("version {} is not known; this program reads {VERSION}", file.version));
        }
        for (at, entry) in file.entries.iter().enumerate() {
            check_name(&entry.name)?;
            check_scopes(entry.scope_set())?;
            let is_id =
                (1..=32).contains(&entry.id.len()) && entry.id.bytes().all(|b| b.is_ascii_alphanumeric());
            if !is_id {
                return Err(format!("the id of key {:?} must be letters and digits, at most 32", entry.name));
            }
            if file.entries.iter().take(at).any(|other| other.id == entry.id) {
                return Err(format!("two keys have the id {}; make one of them anew", entry.id));
            }
        }
        Ok(file)
    }

    /// The keys.
    pub fn entries(&self) -> &[KeyEntry] {
        &self.entries
    }

    /// Adds a key and gives it out: the only time that its secret is known.
    pub fn add(&mut self, new: NewKey, now: Timestamp) -> Result<String> {
        let invalid = |detail| Error::InvalidInput { detail };
        check_name(&new.name).map_err(invalid)?;
        check_scopes(new.scopes).map_err(invalid)?;
        let id = random_hex::<ID_BYTES>()?;
        if self.entries.iter().any(|entry| entry.id == id) {
            return self.add(new, now);
        }
        let secret = random_hex::<SECRET_BYTES>()?;
        let key = format!("{PREFIX}{id}_{secret}");
        let NewKey { name, scopes, limit, not_after } = new;
        let (scopes, hash) = (scopes.iter().collect(), HexHash(hash_secret(&secret)));
        self.entries.push(KeyEntry { id, name, scopes, hash, created_at: Some(now), limit, not_after });
        Ok(key)
    }

    /// Takes out the key of this id.
    pub fn revoke(&mut self, id: &str) -> Result<KeyEntry> {
        let at = self.entries.iter().position(|entry| entry.id == id);
        let at =
            at.ok_or_else(|| Error::NotFound { detail: format!("there is no key with the id {id:?}") })?;
        Ok(self.entries.remove(at))
    }

    /// Changes the file at a path, which is replaced if `change` succeeds. Others who do so at the same time take
    /// turns, so that no change is lost.
    pub fn update<T>(path: &Path, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // Where a link leads, so that all who mean this file wait for each other, and the link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let lock = FileLock::take(&path)?;
        let changed = Self::read_or_new(&path).and_then(|mut file| {
            let result = change(&mut file)?;
            file.write(&path)?;
            Ok(result)
        });
        changed.inspect_err(|_| lock.leave_no_trace(&path))
    }

    /// Replaces the file as a whole: a server that reads it meanwhile sees the old or the new one. A new file is readable
    /// by its owner only; one that was there keeps its owner and permissions, so that the server can still read it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text =
            toml::to_string(self).map_err(|error| Error::InvalidInput { detail: error.to_string() })?;
        file_lock::replace(path, &format!("{HEADER}{text}")).map_err(|error| Error::InvalidInput {
            detail: format!("{}: can't be written: {error}", path.display()),
        })
    }
}

/// The public id and the secret of something that looks like a key.
pub(super) fn split(credential: &str) -> Option<(&str, &str)> {
    let (id, secret) = credential.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = secret.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (secret.len() == 2 * SECRET_BYTES && is_hex && !id.is_empty()).then_some((id, secret))
}

/// Whether a credential means to be an API key.
pub(super) fn is_key(credential: &str) -> bool {
    credential.starts_with(PREFIX)
}

/// What is stored of a secret. Its own context, so that it is of no use anywhere else.
pub(super) fn hash_secret(secret: &str) -> blake3::Hash {
    blake3::derive_key("kinfolk 2026-11 api key secret", secret.as_bytes()).into()
}

fn random_hex<const BYTES: usize>() -> Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Storage { detail: format!("the system gives no randomness: {error}") })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn check_name(name: &str) -> std::result::Result<(), String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_name) {
        return Ok(());
    }
    Err(format!("a key's name has 1 to {NAME_LEN_MAX} letters, digits, hyphens, dots and underscores"))
}

fn check_scopes(scopes: Scopes) -> std::result::Result<(), String> {
    if scopes.is_empty() {
        return Err("a key without scopes is of no use: give it read, write, moderate or admin".to_owned());
    }
    Ok(())
}

/// A hash that is compared in constant time and written in hexadecimal digits.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct HexHash(blake3::Hash);

impl std::fmt::Debug for HexHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("HexHash(hidden)")
    }
}

impl TryFrom<String> for HexHash {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        blake3::Hash::from_hex(text).map(Self).map_err(|_| "a hash is 64 hexadecimal digits")
    }
}

impl From<HexHash> for String {
    fn from(hash: HexHash) -> Self {
        hash.0.to_hex().to_string()
    }
}

/// Moments as RFC 3339 text.
mod optional_timestamp {
    use kinfolk_core::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::ref_option, reason = "serde asks for this signature")]
    pub(crate) fn serialize<S: Serializer>(moment: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
        match moment {
            Some(moment) => out.collect_str(moment),
            None => out.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
        let text = String::deserialize(input)?;
        let moment = Timestamp::parse(&text);
        moment.map(Some).ok_or_else(|| de::Error::custom("write a time such as \"2027-01-31T00:00:00Z\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_key(name: &str) -> NewKey {
        NewKey {
            name: name.to_owned(),
            scopes: [Scope::Read, Scope::Write].into_iter().collect(),
            limit: None,
            not_after: None,
        }
    }

    #[test]
    fn keys_survive_writing_and_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let mut file = KeyFile::read_or_new(&path).unwrap();
        let now = Timestamp::from_millis(1_794_729_600_123);
        let key = file.add(new_key("feed-service"), now).unwrap();
        let limited = NewKey {
            limit: Some(Rate::per_second(5).with_burst(9)),
            not_after: Some(now.plus_millis(1)),
            ..new_key("feed-service")
        };
        file.add(limited, now).unwrap();
        file.write(&path).unwrap();
        assert_eq!(KeyFile::read_or_new(&path).unwrap(), file);

        let (id, secret) = split(&key).unwrap();
        assert_eq!(file.entries()[0].id, id);
        assert_eq!(file.entries()[0].hash(), hash_secret(secret));
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(secret) && !format!("{file:?}").contains(secret));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            file.write(&path).unwrap();
            assert_eq!(mode(), 0o640);
        }

        file.revoke(id).unwrap();
        assert_eq!(file.entries().len(), 1);
        assert!(file.revoke("nobody").is_err());
    }

    #[test]
    fn changes_take_turns_and_a_failed_one_leaves_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.new");
        let add =
            |name: &str| KeyFile::update(&path, |file| file.add(new_key(name), Timestamp::from_millis(1)));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    (0..5).for_each(|number| drop(add(&format!("{thread}-{number}")).unwrap()));
                });
            }
        });
        let all = KeyFile::read_or_new(&path).unwrap();
        assert_eq!(all.entries().len(), 40);
        assert!(KeyFile::update(&path, |file| file.revoke("nobody")).is_err() && add("a name").is_err());
        assert_eq!(KeyFile::read_or_new(&path).unwrap(), all);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
        fs::remove_file(&path).unwrap();
        assert!(add("a name").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nor is a file without keys");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_file_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("keys.toml"), folder.path().join("link.toml"));
        KeyFile::default().write(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        KeyFile::update(&link, |file| file.add(new_key("x"), Timestamp::from_millis(1))).unwrap();
        assert_eq!(KeyFile::read_or_new(&path).unwrap().entries().len(), 1);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn the_first_version_of_the_file_is_read() {
        let file = KeyFile::parse(include_bytes!("../../tests/fixtures/keys-1.toml")).unwrap();
        let entry = &file.entries()[0];
        assert_eq!((entry.name.as_str(), entry.scopes.as_slice()), ("feed-service", &[Scope::Read][..]));
        assert_eq!(entry.limit, Some(Rate::per_second(5_000).with_burst(10_000)));
        assert_eq!(entry.not_after.unwrap().to_string(), "2027-11-15T00:00:00.000Z");
    }

    #[test]
    fn a_file_that_makes_no_sense_says_where() {
        let hash = "0".repeat(64);
        let entry = |id: &str, name: &str, scopes: &str, more: &str| {
            format!(
                "[[key]]\nid = \"{id}\"\nname = \"{name}\"\nscopes = [{scopes}]\nhash = \"{hash}\"\n{more}\n"
            )
        };
        let good = entry("a1", "x", "\"read\"", "");
        assert!(KeyFile::parse(format!("version = 1\n{good}").as_bytes()).is_ok());
        for (content, expected) in [
            (String::new(), "version"),
            (format!("version = 2\n{good}"), "version 2"),
            (format!("version = 1\n{good}{good}"), "two keys have the id a1"),
            (format!("version = 1\n{}", entry("a1", "x y", "\"read\"", "")), "name"),
            (format!("version = 1\n{}", entry("a_1", "x", "\"read\"", "")), "letters and digits"),
            (format!("version = 1\n{}", entry("a1", "x", "", "")), "without scopes"),
            (format!("version = 1\n{}", entry("a1", "x", "\"all\"", "")), "line 5"),
            (format!("version = 1\n{}", entry("a1", "x", "\"read\"", "limit = \"many\"")), "50/s"),
            (format!("version = 1\n{}", entry("a1", "x", "\"read\"", "not_after = \"soon\"")), "2027"),
            (format!("version = 1\n{}", entry("a1", "x", "\"read\"", "secret = \"tell\"")), "secret"),
            (good.replace(&hash, "short"), "64 hexadecimal"),
        ] {
            let problem = KeyFile::parse(content.as_bytes()).unwrap_err();
            assert!(problem.contains(expected), "{problem:?} lacks {expected:?}");
            assert!(!problem.contains("tell"), "{problem}");
        }
        assert!(KeyFile::parse(b"\xff").is_err());
    }

    #[test]
    fn only_whole_keys_are_taken_apart() {
        let secret = "ab".repeat(32);
        assert_eq!(split(&format!("kf_id_{secret}")), Some(("id", secret.as_str())));
        for text in [
            "",
            "kf_",
            "kf_id",
            "kf_id_",
            "kf__",
            "id_x",
            &format!("kf__{secret}"),
            &format!("kf_id_{secret}0"),
        ] {
            assert_eq!(split(text), None, "{text}");
        }
        assert_eq!(split(&format!("kf_id_{}", "AB".repeat(32))), None);
    }
}
