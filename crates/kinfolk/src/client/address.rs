//! The address of a server, and the credential for it.
//!
//! `kinfolk.toml` in the working folder is read by default, and that folder may come from anywhere: a clone, an archive, a
//! shared disk. Such a file must not choose the server that receives a credential from elsewhere, nor the certificates to
//! trust for it. Naming the file or the server is consent.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinfolk_client::{Retry, blocking};
use ureq::http::Uri;

use crate::failure::UsageError;
use crate::settings::{Client, Origin, Texts};

/// The environment variable with the credential.
const VARIABLE: &str = "KINFOLK_API_KEY";
/// The answer to `--ids` where it would have no effect.
const IDS_OF_A_SERVER: &str = "--ids chooses the kind of ids of a new graph, and this command uses a server, whose graph has one already: \
     leave it out, or name a folder with --data DIR";
/// Far larger than a key or a token.
const BYTES_MAX: u64 = 64 << 10;

/// The address of a server and the credential for it.
#[derive(Clone)]
pub(crate) struct ServerAddress {
    /// Its URL.
    url: String,
    /// The API key or token.
    credential: Option<String>,
    /// The certificates to trust instead of the default authorities.
    ca_file: Option<PathBuf>,
    /// Why nothing must be sent to this server.
    objection: Option<String>,
}

impl ServerAddress {
    /// Reads the settings and the credential.
    pub(crate) fn new(client: &Client, texts: &Texts) -> Result<Self> {
        let credential = Credential::read(client.api_key_file.as_deref())?;
        let objection = match &credential {
            _ if matches!(texts.origin("data", "ids"), Origin::Flag(_)) => Some(IDS_OF_A_SERVER.to_owned()),
            Some(credential) if !is_this_machine(&client.url) => objection(credential, texts),
            _ => None,
        };
        let credential = credential.map(|credential| credential.text);
        Ok(Self { url: client.url.clone(), credential, ca_file: client.ca_file.clone(), objection })
    }

    /// A client of the server; nothing is sent yet. An error if only a file found in the working folder names the server for the
    /// credential, or if a flag asks for what only the server can choose.
    pub(crate) fn client(&self) -> Result<blocking::Client> {
        if let Some(objection) = &self.objection {
            return Err(UsageError(objection.clone()).into());
        }
        let mut builder = blocking::Client::builder(&self.url)
            .user_agent(concat!("kinfolk/", env!("CARGO_PKG_VERSION")))
            .retry(Retry::NEVER);
        if let Some(credential) = &self.credential {
            builder = builder.credential(credential);
        }
        if let Some(path) = &self.ca_file {
            builder = builder.trust_file(path)?;
        }
        Ok(builder.build_blocking()?)
    }
}

/// A credential and its origin.
struct Credential {
    text: String,
    source: String,
    /// Whether its file is in the working folder.
    is_in_working_folder: bool,
}

impl Credential {
    fn read(file: Option<&Path>) -> Result<Option<Self>> {
        let read = match file {
            Some(path) => {
                let could_not = || format!("could not read the API key from {}", path.display());
                Some(Self::from_file(path).with_context(could_not)?)
            }
            None => std::env::var(VARIABLE).ok().map(|text| Self {
                text,
                source: VARIABLE.to_owned(),
                is_in_working_folder: false,
            }),
        };
        let trimmed = read.map(|read| Self { text: read.text.trim().to_owned(), ..read });
        Ok(trimmed.filter(|credential| !credential.text.is_empty()))
    }

    fn from_file(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut text = String::new();
        (&file).take(BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 64 KiB"));
        }
        Ok(Self {
            text,
            source: path.display().to_string(),
            is_in_working_folder: is_entry_of_working_folder(path, &file)?,
        })
    }
}

/// Whether an open file is an entry of the working folder, under the name in its path. Compares inodes, so that a link to
/// another file does not count, even if it is replaced meanwhile.
fn is_entry_of_working_folder(path: &Path, file: &File) -> io::Result<bool> {
    let opened = file.metadata()?;
    let entry = path.file_name().and_then(|name| fs::symlink_metadata(name).ok());
    Ok(entry.is_some_and(|entry| (entry.dev(), entry.ino()) == (opened.dev(), opened.ino())))
}

/// Whether a URL names this machine.
fn is_this_machine(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let Some(host) = uri.host() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Why the credential must not be sent: settings of a found file are mixed with others.
fn objection(credential: &Credential, texts: &Texts) -> Option<String> {
    let [url, key, ca] = ["url", "api_key_file", "ca_file"].map(|name| texts.origin("client", name));
    let is_found = |origin: &Origin| matches!(origin, Origin::FoundFile(_));
    // A found file may name any file that the user can read; it owns only files in its own folder.
    let is_own = is_found(key) && credential.is_in_working_folder;
    let source = &credential.source;
    let trust = "--config kinfolk.toml to trust that file";
    if is_found(url) && !is_own {
        return Some(format!(
            "{url} in this folder names the server, but the credential is from {source}: pass --url URL to send it \
             there, or {trust}"
        ));
    }
    if is_found(key) && matches!(url, Origin::Environment(_)) {
        return Some(format!(
            "{key} in this folder names the credential, but {url} the server: pass --url URL to send it there, or \
             {trust}"
        ));
    }
    if is_found(ca) && !is_own {
        return Some(format!(
            "{ca} in this folder names the certificates to trust, but the credential is from {source}: pass --ca-file \
             FILE to trust them, or {trust}"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_urls_are_recognised() {
        for url in [
            "http://127.0.0.1:7400",
            "https://localhost",
            "http://LOCALHOST:1/",
            "http://[::1]:7400",
            "http://[::ffff:127.0.0.1]",
            "http://127.8.9.1",
        ] {
            assert!(is_this_machine(url), "{url}");
        }
        for url in [
            "http://example.org",
            "http://127.0.0.1.example.org",
            "http://127.0.0.1@example.org",
            "http://localhost:7400@example.org",
            "http://example.org#localhost",
            "http://example.org/localhost",
            "http://0.0.0.0:7400",
            "http://10.0.0.1",
            "http://[::2]",
            "nonsense",
            "",
        ] {
            assert!(!is_this_machine(url), "{url}");
        }
    }
}
