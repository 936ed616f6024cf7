//! Where a server is, and the credential that it is shown. Nothing is sent here.
//!
//! A `kinfolk.toml` in the working folder is read without being named, and that folder may belong to anybody: a clone, an
//! archive, a shared disk. Such a file must not choose the server that gets a credential from elsewhere, nor the
//! certificates that are trusted for it. Naming the file, or the server, is consent.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ureq::http::Uri;

use crate::failure::UsageError;
use crate::settings::{Client, Origin, Texts};

/// The variable with the credential for a server.
const CREDENTIAL: &str = "KINFOLK_API_KEY";

/// Where a server is and how to be let in.
#[derive(Clone)]
pub struct ServerAddress {
    /// Its URL.
    pub url: String,
    /// The API key or token to show.
    pub credential: Option<String>,
    /// The certificates to trust instead of the usual authorities.
    pub ca_file: Option<PathBuf>,
    /// Why the credential must not be sent there, if it must not.
    pub(super) objection: Option<String>,
}

/// Without the credential.
impl std::fmt::Debug for ServerAddress {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ServerAddress").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ServerAddress {
    /// The address that the settings make up.
    pub fn new(client: &Client, texts: &Texts) -> Result<Self> {
        let key_file = client.api_key_file.as_deref();
        let credential = credential(key_file)?;
        let objection = match &credential {
            Some(_) if !is_this_machine(&client.url) => objection(key_file, texts),
            _ => None,
        };
        Ok(Self { url: client.url.clone(), credential, ca_file: client.ca_file.clone(), objection })
    }

    /// Refuses to show a credential to a server that only a file found in the working folder has named.
    pub fn require_consent(&self) -> Result<()> {
        match &self.objection {
            Some(objection) => Err(UsageError(objection.clone()).into()),
            None => Ok(()),
        }
    }
}

fn credential(file: Option<&Path>) -> Result<Option<String>> {
    let text = match file {
        Some(path) => Some(
            fs::read_to_string(path)
                .with_context(|| format!("could not read the API key from {}", path.display()))?,
        ),
        None => std::env::var(CREDENTIAL).ok(),
    };
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Whether a URL leads to this machine: what is sent there does not leave it.
fn is_this_machine(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let Some(host) = uri.host() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Why the credential must not be sent to the server, if settings of a found file mix with others.
fn objection(key_file: Option<&Path>, texts: &Texts) -> Option<String> {
    let [url, key, ca] = ["url", "api_key_file", "ca_file"].map(|name| texts.origin("client", name));
    let is_found = |origin: &Origin| matches!(origin, Origin::FoundFile(_));
    // A found file may name any file that the user can read; only one in the same folder belongs to it.
    let is_own = is_found(key) && key_file.is_some_and(lies_here);
    let source = match key_file {
        Some(path) => path.display().to_string(),
        None => CREDENTIAL.to_owned(),
    };
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

/// Whether a file lies in the working folder, wherever links lead.
fn lies_here(path: &Path) -> bool {
    let (Ok(file), Ok(here)) = (fs::canonicalize(path), fs::canonicalize(".")) else { return false };
    file.starts_with(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are() {
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
