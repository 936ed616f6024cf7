//! What identifies a store on disk: its format version, id kind, epoch and signing keys.
//!
//! `FORMAT` and `keys` are text with a checksum in the last line, so that an engineer can read them:
//!
//! ```text
//! kinfolk store          kinfolk keys
//! format 1               <64 hex digits: the signing key>
//! ids integer            <64 hex digits: an older key>…
//! epoch 0123456789abcdef checksum 89abcdef
//! base 0
//! checksum 89abcdef
//! ```
//!
//! `base` is the position before the first event of this epoch: 0, or a backup's position after a restore.
//!
//! Format 1 has edges only. The first post makes it format 2, the first comment format 3, and the first comment that a known
//! moderator removed or purged format 4, which an older Kinfolk refuses to open: it would take them in the log for damage.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use kinfolk_core::{Epoch, Error, IdKind, Keyring, Result, Sequence, SigningKey};

use crate::disk::files;
use crate::disk::folder_lock::LOCK_FILE;
use crate::disk::restore_marker::Marker;

/// The newest format that this code reads.
const FORMAT: u32 = Content::NEWEST as u32;
const FORMAT_FILE: &str = "FORMAT";
const KEYS_FILE: &str = "keys";

/// What may be in a store, beside what is named before it. Its number is the format's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Content {
    Edges = 1,
    Posts = 2,
    Comments = 3,
    /// Moderators who removed or purged comments.
    Moderators = 4,
}

impl Content {
    /// The one that has everything.
    pub(crate) const NEWEST: Self = Self::Moderators;

    /// The content of that number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        let all = [Self::Edges, Self::Posts, Self::Comments, Self::Moderators];
        all.into_iter().find(|&content| content as u32 == number)
    }
}

/// The identity of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Which ids it uses.
    pub ids: IdKind,
    /// The life of its change log.
    pub epoch: Epoch,
    /// The position before the first event of this epoch.
    pub base: Sequence,
    /// What may be in it.
    pub content: Content,
}

/// Whether a folder holds a store of any format.
pub(crate) fn exists(folder: &Path) -> bool {
    folder.join(FORMAT_FILE).exists()
}

/// Refuses a folder that already holds something, then makes it.
pub(crate) fn require_vacant(folder: &Path) -> Result<()> {
    Marker::refuse(folder)?;
    // What a process leaves that was stopped while it made a store.
    let left_behind = |name: &OsStr| name == LOCK_FILE || name == "FORMAT.tmp";
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            match entries.find(|entry| entry.as_ref().is_ok_and(|entry| !left_behind(&entry.file_name()))) {
                None => Ok(()),
                Some(_) if exists(folder) => {
                    Err(Error::invalid_store(format!("{} already holds a store", folder.display())))
                }
                Some(_) => Err(Error::invalid_store(format!(
                    "{} is not empty and holds no Kinfolk store; name another folder",
                    folder.display()
                ))),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => files::create_folder(folder),
        Err(error) => Err(files::io_error("reading folder", folder, &error)),
    }
}

/// Writes the identity. Done last when a store is made: a folder without it is not a store.
pub(crate) fn write_identity(folder: &Path, identity: Identity) -> Result<()> {
    let format = identity.content as u32;
    let lines = format!(
        "kinfolk store\nformat {format}\nids {}\nepoch {}\nbase {}\n",
        identity.ids.name(),
        identity.epoch,
        identity.base
    );
    files::replace_text(&folder.join(FORMAT_FILE), &lines)
}

/// Reads the identity of the store in a folder.
pub(crate) fn read_identity(folder: &Path) -> Result<Identity> {
    Marker::refuse(folder)?;
    let path = folder.join(FORMAT_FILE);
    let missing = || {
        Error::invalid_store(format!("there is no Kinfolk store in {} (no FORMAT file)", folder.display()))
    };
    let text = files::read_text(&path)?.ok_or_else(missing)?;
    // The version is read before the checksum: a later format may seal its file in another way.
    if let Some(version) = text.strip_prefix("kinfolk store\nformat ").and_then(|rest| rest.lines().next())
        && version.parse::<u32>().is_ok_and(|version| version > FORMAT)
        && files::open_text(&text).is_some()
    {
        return Err(Error::invalid_store(format!(
            "the store in {} has format {version}, this Kinfolk reads format {FORMAT}: use a newer version",
            folder.display()
        )));
    }
    let damaged =
        || Error::corrupt(format!("{} is damaged; restore it from a backup of the folder", path.display()));
    let lines = files::open_text(&text).ok_or_else(damaged)?;
    let field = |name| files::text_field(lines, name);
    let identity = || {
        Some(Identity {
            content: Content::from_number(field("format")?.parse().ok()?)?,
            ids: IdKind::from_name(field("ids")?)?,
            epoch: Epoch(u64::from_str_radix(field("epoch")?, 16).ok()?),
            base: Sequence(field("base")?.parse().ok()?),
        })
    };
    identity().ok_or_else(damaged)
}

/// Fresh random bytes from the operating system.
pub(crate) fn random<const LEN: usize>() -> Result<[u8; LEN]> {
    let mut bytes = [0; LEN];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::storage(format!("no randomness from the system: {error}")))?;
    Ok(bytes)
}

/// Reads the signing keys, making a first one if there is none.
pub(crate) fn read_keys(folder: &Path) -> Result<Keyring> {
    let path = folder.join(KEYS_FILE);
    let Some(text) = files::read_text(&path)? else {
        let keys = Keyring::new(SigningKey::new(random()?), []);
        write_keys(folder, &keys)?;
        return Ok(keys);
    };
    let parse = || {
        let mut lines = files::open_text(&text)?.lines();
        (lines.next()? == "kinfolk keys").then_some(())?;
        let mut keys = lines.map(parse_key).collect::<Option<Vec<_>>>()?.into_iter();
        Some(Keyring::new(keys.next()?, keys))
    };
    parse().ok_or_else(|| {
        Error::corrupt(format!(
            "{} is damaged; remove it to get new keys: older tokens and cursors then fail",
            path.display()
        ))
    })
}

fn write_keys(folder: &Path, keys: &Keyring) -> Result<()> {
    let mut lines = String::from("kinfolk keys\n");
    for key in keys.keys() {
        lines.extend(key.secret().iter().map(|byte| format!("{byte:02x}")));
        lines.push('\n');
    }
    files::replace_private_file(&folder.join(KEYS_FILE), files::seal_text(&lines).as_bytes())
}

fn parse_key(line: &str) -> Option<SigningKey> {
    let mut secret = [0; 32];
    (line.len() == 64 && line.is_ascii()).then_some(())?;
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&line[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(SigningKey::new(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { ids: IdKind::Uuid, epoch: Epoch(0xabc), base: Sequence(7), content: Content::Edges }
    }

    #[test]
    fn identity_survives_and_damage_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_identity(folder.path()).unwrap_err().to_string().contains("no Kinfolk store"));
        write_identity(folder.path(), identity()).unwrap();
        assert_eq!(read_identity(folder.path()).unwrap(), identity());

        let path = folder.path().join(FORMAT_FILE);
        let text = fs::read(&path).unwrap();
        for at in 0..text.len() {
            let mut damaged = text.clone();
            damaged[at] ^= 4;
            fs::write(&path, &damaged).unwrap();
            let error = read_identity(folder.path()).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "byte {at}: {error}");
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FORMAT_FILE), files::seal_text("kinfolk store\nformat 9\n")).unwrap();
        let error = read_identity(folder.path()).unwrap_err();
        assert!(matches!(&error, Error::InvalidStore { detail } if detail.contains("format 9")), "{error}");
    }

    #[test]
    fn keys_survive_and_refuse_damage() {
        let folder = tempfile::tempdir().unwrap();
        let first = read_keys(folder.path()).unwrap();
        let previous: Vec<_> = first.keys().cloned().collect();
        let two = Keyring::new(SigningKey::new([7; 32]), previous);
        write_keys(folder.path(), &two).unwrap();
        assert!(read_keys(folder.path()).unwrap().keys().eq(two.keys()));
        fs::write(folder.path().join(KEYS_FILE), "kinfolk keys\nnonsense\n").unwrap();
        assert!(matches!(read_keys(folder.path()), Err(Error::Corrupt { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn keys_can_be_read_by_their_owner_only_also_when_replacing_them_stops_half_way() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEYS_FILE);
        let ring = read_keys(folder.path()).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_keys(folder.path(), &ring).unwrap();
        assert_eq!(mode(&path), 0o600);

        // What is written before it gets its name stays behind where it can't get it.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("in the way"), "").unwrap();
        write_keys(folder.path(), &ring).unwrap_err();
        assert_eq!(mode(&path.with_extension("tmp")), 0o600);
    }
}
