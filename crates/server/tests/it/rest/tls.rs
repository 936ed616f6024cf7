//! REST over TLS: requests, and clients that do not get as far as a request.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::IdKind;
use kinfolk_server::rest::RestSettings;
use kinfolk_server::{Access, Protocol, Tls, TlsSettings};
use serde_json::json;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{Connection, socket};
use super::server::Server;

/// A server with a certificate of its own, and what a client must trust for it.
fn start(settings: RestSettings) -> (Server, CertificateDer<'static>) {
    let folder = tempfile::tempdir().unwrap();
    let files = TlsSettings {
        certificates: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::load(&files).unwrap().server_config(Protocol::Rest).unwrap();
    let server = Server::listening(settings, Some(tls));
    server.open(IdKind::Integer, Access::open());
    (server, made.cert.der().clone())
}

fn connect(server: &Server, trusted: CertificateDer<'static>) -> Connection {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    Connection::over(StreamOwned::new(client, socket(server.address)))
}

#[test]
fn requests_over_tls() {
    let (server, trusted) = start(RestSettings::default());
    let mut connection = connect(&server, trusted);
    let followed = connection.request("POST", "/v1/users/2/follow", &[("kinfolk-actor", "1")], b"");
    assert_eq!(followed.status, 204);
    let counts = connection.request("GET", "/v1/users/2/counts", &[], b"");
    assert_eq!(counts.json(), json!({"id": "2", "following": 0, "followers": 1}));
    connection.write(b"nonsense\r\n\r\n").unwrap();
    assert_eq!(connection.answer("GET").unwrap().refusal(), (400, "invalid_request".to_owned()));
    assert!(connection.is_closed());
    server.stop();
    server.join();
}

#[test]
fn those_who_do_not_speak_tls_are_left() {
    let settings = RestSettings { header_timeout: Duration::from_millis(100), ..RestSettings::default() };
    let (server, _) = start(settings);
    let mut plain = server.connect();
    plain.begin("GET", "/healthz", &[]);
    while !plain.is_closed() {}
    let mut silent = server.connect();
    while !silent.is_closed() {}
}

#[test]
fn a_stop_does_not_wait_for_a_handshake() {
    let (server, _) = start(RestSettings::default());
    let mut silent = server.connect();
    // The connection after it has shaken hands or not: either way it is the later one.
    let mut later = server.connect();
    later.begin("GET", "/healthz", &[]);
    while !later.is_closed() {}
    server.stop();
    server.join();
    assert!(silent.is_closed());
}
