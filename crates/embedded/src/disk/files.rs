//! Small helpers for files: durable replacement, folder syncs, and one way of turning I/O errors into ours.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use kinfolk_core::{Epoch, Error, IdKind, Result, Sequence};

/// Says what was being done when an I/O error happened.
pub(crate) fn io_error(doing: &str, path: &Path, error: &io::Error) -> Error {
    storage_error(format!("{doing} {}: {error}", path.display()), error)
}

/// An I/O error in words. A full disk keeps its own error.
pub(crate) fn storage_error(detail: String, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::StorageFull {
        Error::StorageFull { detail }
    } else {
        Error::Storage { detail }
    }
}

/// Adds what was being done, and to which path, to an I/O result.
pub(crate) trait IoContext<T> {
    /// Turns the error into ours.
    fn during(self, doing: &str, path: &Path) -> Result<T>;

    /// As [`IoContext::during`], where the path may be missing.
    fn if_found(self, doing: &str, path: &Path) -> Result<Option<T>>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, doing: &str, path: &Path) -> Result<T> {
        self.map_err(|error| io_error(doing, path, &error))
    }

    fn if_found(self, doing: &str, path: &Path) -> Result<Option<T>> {
        match self {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.during(doing, path).map(Some),
        }
    }
}

/// Makes the entries of a folder durable: new, renamed and removed files.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|handle| handle.sync_all()).during("syncing folder", folder)
}

/// Creates a folder if it is missing, durably.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).during("creating folder", folder)?;
    folder.parent().map_or(Ok(()), |parent| {
        sync_folder(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
    })
}

/// Replaces a file as a whole: after a crash it has either its old content or the new one.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, |temporary| File::create(temporary))
}

/// As [`replace_file`], for secrets: at no moment can anybody but the owner read them.
pub(crate) fn replace_private_file(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, create_private)
}

fn replace(path: &Path, content: &[u8], create: fn(&Path) -> io::Result<File>) -> Result<()> {
    let temporary = &path.with_extension("tmp");
    let mut file = create(temporary).during("creating", temporary)?;
    let written = file.write_all(content).during("writing", temporary);
    // What is left of a failure may take the last space.
    let written = written.and_then(|()| file.sync_all().during("syncing", temporary));
    written.inspect_err(|_| drop(remove_file(temporary)))?;
    drop(file);
    fs::rename(temporary, path).during("replacing", path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Goes on without something that a store can do without where the disk has no room for it; `instead` says what happens then.
pub(crate) fn unless_full(done: Result<()>, instead: &'static str) -> Result<()> {
    match done {
        Err(error @ Error::StorageFull { .. }) => {
            tracing::warn!(%error, "{instead}");
            Ok(())
        }
        other => other,
    }
}

/// A new file that nobody but its owner can open, from its first moment on and whatever the umask is. One that was left
/// behind is not taken over: it may be open to others, or be open elsewhere.
fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, OWNER_ONLY);
    let file = options.open(path)?;
    // A umask only takes away, but it may take away what the owner needs.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(OWNER_ONLY))?;
    Ok(file)
}

/// Permissions to read and write for the owner, and none for others.
const OWNER_ONLY: u32 = 0o600;

/// Removes a file that may be missing.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    fs::remove_file(path).if_found("removing", path).map(|_| ())
}

/// Reads a file that a store can do without: where it is missing or can't be used there is nothing, and `instead` says what
/// happens then. What a process has left that was stopped while it wrote the file is removed.
pub(crate) fn read_dispensable<T>(
    path: &Path,
    instead: &'static str,
    read: impl FnOnce(File) -> io::Result<T>,
) -> Result<Option<T>> {
    remove_file(&path.with_extension("tmp"))?;
    let Some(file) = File::open(path).if_found("opening", path)? else { return Ok(None) };
    match read(file) {
        Ok(content) => Ok(Some(content)),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "a file is not usable: {instead}");
            Ok(None)
        }
    }
}

/// What files of a log, a snapshot or a backup begin with: magic, two numbers, epoch and position, little-endian.
pub(crate) fn file_head(magic: &[u8; 8], numbers: [u32; 2], epoch: Epoch, position: Sequence) -> [u8; 32] {
    let mut head = [0; 32];
    head[..8].copy_from_slice(magic);
    head[8..12].copy_from_slice(&numbers[0].to_le_bytes());
    head[12..16].copy_from_slice(&numbers[1].to_le_bytes());
    head[16..24].copy_from_slice(&epoch.0.to_le_bytes());
    head[24..].copy_from_slice(&position.0.to_le_bytes());
    head
}

/// The number of a kind of ids in such files.
pub(crate) fn id_kind_number(ids: IdKind) -> u32 {
    match ids {
        IdKind::Integer => 1,
        IdKind::Uuid => 2,
    }
}

/// Lines of text with a checksum in the last one, for small files that people may want to read.
pub(crate) fn seal_text(lines: &str) -> String {
    format!("{lines}checksum {:08x}\n", crc32c::crc32c(lines.as_bytes()))
}

/// Replaces a file of such lines as a whole.
pub(crate) fn replace_text(path: &Path, lines: &str) -> Result<()> {
    replace_file(path, seal_text(lines).as_bytes())
}

/// The content of a file, if there is one. What is not text is damage, which its checksum shows.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    let bytes = fs::read(path).if_found("reading", path)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// What is behind a name at the start of a line, and a space.
pub(crate) fn text_field<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
    lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// The lines before the checksum, if it is right.
pub(crate) fn open_text(text: &str) -> Option<&str> {
    let at = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let lines = text.get(..at)?;
    (seal_text(lines) == text).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_text_opens_and_any_change_is_seen() {
        let sealed = seal_text("kinfolk\nformat 1\n");
        assert_eq!(open_text(&sealed), Some("kinfolk\nformat 1\n"));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone().into_bytes();
            damaged[at] ^= 1;
            let damaged = String::from_utf8_lossy(&damaged).into_owned();
            assert_eq!(open_text(&damaged), None, "at {at}");
            assert_eq!(open_text(&sealed[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace_file(&path, b"one").unwrap();
        replace_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_private_from_its_first_moment_on() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        // Other tests of the process have this umask for a moment, too; it takes nothing away from them.
        let former = rustix::process::umask(rustix::fs::Mode::empty());
        let created = create_private(&folder.path().join("private"));
        rustix::process::umask(former);
        let length = created.unwrap().metadata().unwrap().len();
        assert_eq!((mode(&folder.path().join("private")), length), (0o600, 0));

        // Neither what a stopped process has left nor what was there before opens the new one.
        let (path, temporary) = (folder.path().join("file"), folder.path().join("file.tmp"));
        for left in [&path, &temporary] {
            fs::write(left, "left").unwrap();
            fs::set_permissions(left, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let mut held = File::open(&temporary).unwrap();
        replace_private_file(&path, b"secret").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"secret".to_vec()));
        assert_eq!(io::read_to_string(&mut held).unwrap(), "left", "it is another file");
    }
}
