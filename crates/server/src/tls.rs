//! The certificate that both ports show, from files that may be replaced while the server runs. Connections and
//! clients' certificates are not here.

use std::path::PathBuf;
use std::sync::Arc;

use kinfolk_core::{Error, Result};
use parking_lot::RwLock;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::metrics::Protocol;
use crate::watched_file::WatchedFile;

/// Where the certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate and those that lead to a known authority, in PEM, the server's own first.
    pub certificates: PathBuf,
    /// The private key of the first certificate, in PEM.
    pub key: PathBuf,
}

/// The certificate in use. New connections get the current one; open ones are not disturbed.
#[derive(Debug)]
pub struct Tls {
    certificates: WatchedFile,
    key: WatchedFile,
    provider: Arc<CryptoProvider>,
    current: Arc<Current>,
}

/// What is shown to clients.
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Current").field("certificates", &self.0.read().cert.len()).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the certificate and its key, and sees that they belong together.
    pub fn load(settings: &TlsSettings) -> Result<Self> {
        let certificates = WatchedFile::new(&settings.certificates);
        let key = WatchedFile::new(&settings.key);
        let provider = Arc::new(ring::default_provider());
        let certified = certify(&certificates, &key, &provider)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(certified))));
        Ok(Self { certificates, key, provider, current })
    }

    /// The TLS settings of a port. They always present the current certificate.
    pub fn server_config(&self, protocol: Protocol) -> Result<Arc<ServerConfig>> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::InvalidInput { detail: format!("TLS can't be set up: {error}") })?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.current) as _);
        config.alpn_protocols = match protocol {
            Protocol::Rest => vec![b"http/1.1".to_vec()],
            Protocol::Resp => Vec::new(),
        };
        Ok(Arc::new(config))
    }

    /// Reads the files again. If they can't be used, returns why, and the former certificate stays.
    pub fn reload(&self) -> Result<()> {
        let certified = certify(&self.certificates, &self.key, &self.provider)?;
        *self.current.0.write() = Arc::new(certified);
        Ok(())
    }

    /// Looks whether the files have changed and takes a new certificate; problems are logged. Blocks as long as
    /// reading two small files takes. While only one of the two is replaced they do not fit, and the former stay.
    pub fn poll(&self) {
        let changed = [&self.certificates, &self.key].map(|file| file.read_if_changed().is_some());
        if !changed.contains(&true) {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!("took in a changed certificate"),
            Err(error) => {
                tracing::error!(%error, "a changed certificate can't be used; the former one stays");
            }
        }
    }
}

fn certify(certificates: &WatchedFile, key: &WatchedFile, provider: &CryptoProvider) -> Result<CertifiedKey> {
    let chain: std::result::Result<Vec<_>, PemError> =
        CertificateDer::pem_slice_iter(&certificates.read()?).collect();
    let chain = chain.map_err(|error| certificates.invalid(describe(&error)))?;
    if chain.is_empty() {
        return Err(certificates.invalid("has no certificate in PEM"));
    }
    let private = PrivateKeyDer::from_pem_slice(&key.read()?).map_err(|error| match error {
        PemError::NoItemsFound => key.invalid("has no private key in PEM"),
        error => key.invalid(describe(&error)),
    })?;
    CertifiedKey::from_der(chain, private, provider).map_err(|error| {
        key.invalid(format_args!(
            "the key can't be used with the certificate in {}: {error}",
            certificates.path().display()
        ))
    })
}

/// The error's own text may quote what is in the file.
fn describe(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "a PEM section has no end",
        PemError::IllegalSectionStart { .. } => "a PEM section has a malformed beginning",
        PemError::Base64Decode(_) => "a PEM section is not valid base64",
        _ => "is not valid PEM",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    fn settings(folder: &Path) -> TlsSettings {
        TlsSettings { certificates: folder.join("certificate.pem"), key: folder.join("key.pem") }
    }

    /// A new self-signed certificate in the files, and what a client must trust for it.
    fn issue(folder: &Path) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let settings = settings(folder);
        std::fs::write(settings.certificates, made.cert.pem()).unwrap();
        std::fs::write(settings.key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    }

    /// Shakes hands over a real socket. What was agreed on, or why it failed.
    async fn handshake(
        tls: &Tls,
        protocol: Protocol,
        trusted: &CertificateDer<'static>,
    ) -> std::io::Result<Option<Vec<u8>>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(tls.server_config(protocol).unwrap());
        let server = async {
            let mut stream = acceptor.accept(listener.accept().await?.0).await?;
            stream.write_all(b"kin").await?;
            stream.shutdown().await
        };
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        if protocol == Protocol::Rest {
            client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        let client = async {
            let name = ServerName::try_from("localhost").unwrap();
            let socket = TcpStream::connect(address).await?;
            let mut stream = TlsConnector::from(Arc::new(client)).connect(name, socket).await?;
            let mut text = Vec::new();
            stream.read_to_end(&mut text).await?;
            assert_eq!(text, b"kin");
            Ok(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
        };
        let (_, agreed) = tokio::join!(server, client);
        agreed
    }

    #[tokio::test]
    async fn both_ports_show_the_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let trusted = issue(folder.path());
        let tls = Tls::load(&settings(folder.path())).unwrap();
        let rest = handshake(&tls, Protocol::Rest, &trusted).await.unwrap();
        assert_eq!(rest.as_deref(), Some(b"http/1.1".as_slice()));
        assert_eq!(handshake(&tls, Protocol::Resp, &trusted).await.unwrap(), None);
        let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        assert!(handshake(&tls, Protocol::Resp, stranger.cert.der()).await.is_err());
    }

    #[tokio::test]
    async fn a_new_certificate_is_taken_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let old = issue(folder.path());
        let tls = Tls::load(&settings(folder.path())).unwrap();
        tls.poll();
        handshake(&tls, Protocol::Resp, &old).await.unwrap();

        let old_key = std::fs::read(&settings(folder.path()).key).unwrap();
        let new = issue(folder.path());
        let new_key = std::fs::read(&settings(folder.path()).key).unwrap();
        std::fs::write(&settings(folder.path()).key, old_key).unwrap();
        tls.poll();
        assert!(tls.reload().unwrap_err().to_string().contains("can't be used with the certificate"));
        handshake(&tls, Protocol::Resp, &old).await.unwrap();

        std::fs::write(&settings(folder.path()).key, new_key).unwrap();
        tls.poll();
        handshake(&tls, Protocol::Resp, &new).await.unwrap();
        assert!(handshake(&tls, Protocol::Resp, &old).await.is_err());
    }

    #[test]
    fn unusable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let refused = |expected: &[&str]| {
            let error = Tls::load(&settings).unwrap_err().to_string();
            expected.iter().for_each(|part| assert!(error.contains(part), "{error} lacks {part}"));
        };
        refused(&["certificate.pem", "can't be read"]);
        issue(folder.path());
        let key = std::fs::read_to_string(&settings.key).unwrap();
        std::fs::write(&settings.key, "nothing").unwrap();
        refused(&["key.pem", "no private key"]);
        std::fs::write(&settings.key, key.replace("-----END", "-----")).unwrap();
        refused(&["key.pem", "PEM"]);
        std::fs::write(&settings.key, &key).unwrap();
        std::fs::write(&settings.certificates, &key).unwrap();
        refused(&["certificate.pem", "no certificate"]);
        std::fs::write(&settings.certificates, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
            .unwrap();
        refused(&["certificate.pem", "base64"]);
        issue(folder.path());
        std::fs::write(&settings.key, key).unwrap();
        refused(&["key.pem", "can't be used with the certificate", "certificate.pem"]);
    }

    #[test]
    fn debug_output_has_no_key() {
        let folder = tempfile::tempdir().unwrap();
        issue(folder.path());
        let tls = Tls::load(&settings(folder.path())).unwrap();
        let shown = format!("{tls:?}");
        let pem = std::fs::read_to_string(settings(folder.path()).key).unwrap();
        let inside = pem.lines().nth(1).unwrap();
        assert!(!shown.contains(inside), "{shown}");
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let numbers = format!("{:?}", &der.secret_der()[40..44]);
        assert!(!shown.contains(numbers.trim_matches(['[', ']'])), "{shown}");
    }
}
