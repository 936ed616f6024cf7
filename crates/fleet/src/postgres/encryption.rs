//! TLS to databases. A certificate is always verified, with the name that the connection string has for the host: a connection
//! that anybody could answer would protect from nobody.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kinfolk_core::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Config, Socket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as ClientStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How connections are encrypted; not at all, if no authorities are named.
#[derive(Clone)]
pub(crate) struct Encryption(Option<TlsConnector>);

impl Encryption {
    /// Trusts the authorities whose certificates are in a file, as PEM.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self> {
        let Some(path) = authorities else { return Ok(Self(None)) };
        let invalid = |reason: String| Error::InvalidStore {
            detail: format!("{} has no certificates of authorities: {reason}", path.display()),
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| invalid(error.to_string()))? {
            let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
            roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(invalid("it is empty".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Some(TlsConnector::from(Arc::new(config)))))
    }

    /// What encrypts connections, if anything does.
    pub(crate) fn connector(&self) -> Option<&TlsConnector> {
        self.0.as_ref()
    }

    /// Decides whether connections to a database are encrypted. What its connection string prefers is never given up silently.
    pub(crate) fn apply(&self, what: &str, config: &mut Config) -> Result<()> {
        let mode = match (config.get_ssl_mode(), &self.0) {
            (SslMode::Disable, _) | (SslMode::Prefer, None) => SslMode::Disable,
            (_, Some(_)) => SslMode::Require,
            (_, None) => {
                let detail =
                    format!("{what} requires TLS: name the certificates of its authority in fleet.ca_file");
                return Err(Error::InvalidStore { detail });
            }
        };
        config.ssl_mode(mode);
        Ok(())
    }
}

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // Asked for every connection: a path of a socket is no name, and needs none.
        Ok(Handshake { connector: self.0.clone(), host: host.to_owned() })
    }
}

/// A handshake with a host.
pub(crate) struct Handshake {
    connector: Option<TlsConnector>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let connector = self.connector.ok_or_else(|| io::Error::other("no authorities are named"))?;
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            Ok(Encrypted(connector.connect(name, stream).await?))
        })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted(ClientStream<Socket>);

impl TlsStream for Encrypted {
    /// None: the name in the certificate says who answers.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(connection: &str) -> Result<SslMode> {
        let mut config: Config = connection.parse().unwrap();
        Encryption(None).apply("host a", &mut config)?;
        Ok(config.get_ssl_mode())
    }

    #[test]
    fn without_authorities_tls_is_not_pretended() {
        assert_eq!(mode("host=db").unwrap(), SslMode::Disable);
        assert_eq!(mode("host=db sslmode=disable").unwrap(), SslMode::Disable);
        let refused = mode("host=db sslmode=require").unwrap_err().to_string();
        assert!(refused.contains("host a requires TLS") && refused.contains("fleet.ca_file"), "{refused}");
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        for path in ["Cargo.toml", "missing"] {
            let Err(refused) = Encryption::new(Some(Path::new(path))) else { panic!("{path} is trusted") };
            assert!(refused.to_string().contains(path), "{refused}");
        }
    }
}
