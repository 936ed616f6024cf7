//! A server with a certificate of its own.

use kinfolk_client::{Client, Error, Retry, blocking};
use kinfolk_server::{Tls, TlsSettings};

use crate::server::Server;

#[test]
fn only_a_trusted_server_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let files = TlsSettings {
        certificates: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::listening(Some(&Tls::load(&files).unwrap()));

    let builder = || blocking::Client::builder(server.url()).retry(Retry::NEVER);
    let trusting = builder().trust_file(&files.certificates).unwrap().build_blocking().unwrap();
    assert!(trusting.acting_as(1).follow(2).unwrap().changed);
    let refused = builder().build_blocking().unwrap().counts(1).unwrap_err();
    assert!(matches!(refused, Error::Connection { .. }), "{refused:?}");
    for path in [&files.key, &folder.path().join("missing.pem")] {
        assert!(matches!(Client::builder(server.url()).trust_file(path), Err(Error::Configuration(_))));
    }
}
