//! The same protocol inside TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use kinfolk_server::{Protocol, Tls, TlsSettings};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::encode;
use super::server::{Server, Setup};

/// A server with a new certificate, and the certificate.
fn start() -> (Server, CertificateDer<'static>) {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let settings = TlsSettings {
        certificates: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&settings.certificates, made.cert.pem()).unwrap();
    std::fs::write(&settings.key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::load(&settings).unwrap().server_config(Protocol::Resp).unwrap();
    (Server::with(Setup { tls: Some(tls), ..Setup::default() }), made.cert.der().clone())
}

fn connect(server: &Server, trusted: CertificateDer<'static>) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(connection, TcpStream::connect(server.address).unwrap())
}

#[test]
fn a_pipeline_and_a_clean_end() {
    let (server, trusted) = start();
    let mut stream = connect(&server, trusted);
    let members: Vec<String> = (10_000..15_000).map(|id| id.to_string()).collect();
    let pipeline = [
        encode(&format!("SADD following:1 {}", members.join(" "))),
        encode("SMEMBERS following:1"),
        encode("SISMEMBER following:1 10000").repeat(1_000),
        encode("QUIT"),
    ];
    stream.write_all(&pipeline.concat()).unwrap();
    let mut replies = String::new();
    // An end without a goodbye would be an error here.
    stream.read_to_string(&mut replies).unwrap();
    let listed: String = members.iter().rev().map(|id| format!("$5\r\n{id}\r\n")).collect();
    assert_eq!(replies, format!(":5000\r\n*5000\r\n{listed}{}+OK\r\n", ":1\r\n".repeat(1_000)));
}

#[test]
fn what_is_not_tls_hurts_nobody() {
    let (server, trusted) = start();
    let mut plain = server.connect();
    plain.send(&encode("PING"));
    let mut silent = server.connect();
    let mut stream = connect(&server, trusted);
    stream.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    silent.send(b"x");
}
