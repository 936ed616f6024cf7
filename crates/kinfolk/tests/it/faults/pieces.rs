//! Looks for pieces of texts in all files of a folder, whatever their format.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// As long as a piece must be to be recognised: no two texts share one by chance.
pub const PIECE: usize = 16;
/// How often files are read again that change meanwhile.
const TRIES: usize = 1_000;

pub type Pieces = HashSet<[u8; PIECE]>;

/// All pieces of some texts.
pub fn of(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Pieces {
    let mut pieces = Pieces::new();
    for text in texts {
        pieces.extend(text.as_ref().as_bytes().array_windows::<PIECE>());
    }
    pieces
}

/// Where in a folder one of the pieces is, if one is anywhere.
pub fn find(folder: &Path, pieces: &Pieces) -> Result<Option<String>, String> {
    if pieces.is_empty() {
        return Ok(None);
    }
    for (path, content) in files(folder)? {
        let found = content.array_windows().position(|piece| pieces.contains::<[u8; PIECE]>(piece));
        if let Some(at) = found {
            return Ok(Some(format!("in {} at {at}", path.display())));
        }
    }
    Ok(None)
}

/// All files as they are at one time. A server merges files while they are read: if one goes meanwhile, they are read again.
pub fn files(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    for _ in 0..TRIES {
        let mut all = Vec::new();
        match read_files(folder, &mut all) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read.map(|()| all).map_err(|error| format!("{}: {error}", folder.display())),
        }
    }
    Err(format!("the files of {} do not come to rest", folder.display()))
}

fn read_files(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_files(&path, all)?;
        } else {
            let content = fs::read(&path)?;
            all.push((path, content));
        }
    }
    Ok(())
}
