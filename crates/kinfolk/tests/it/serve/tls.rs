//! Encryption of both ports, with a certificate of the test's own.

use super::running::Running;
use crate::support::Sandbox;

fn write_certificate(sandbox: &Sandbox) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    sandbox.write("certificate.pem", made.cert.pem());
    sandbox.write("key.pem", made.signing_key.serialize_pem());
}

#[test]
fn both_ports_are_encrypted_and_a_new_certificate_is_taken() {
    let sandbox = Sandbox::new();
    write_certificate(&sandbox);
    let server = Running::start(&sandbox, "--tls-certificates certificate.pem --tls-key key.pem");
    assert!(server.ready.contains("https://") && server.ready.contains("rediss://"), "{}", server.ready);
    let url = server.url();
    sandbox.ok(&format!("follow 1 2 {url} --ca-file certificate.pem"));
    let refused = sandbox.fails(&format!("check 1 2 {url}"), 1);
    assert!(refused.contains("the connection to"), "{refused}");
    assert!(!server.redis("PING").starts_with('+'), "not in the clear");

    write_certificate(&sandbox);
    server.signal("HUP");
    server.line_with("reloaded");
    sandbox.ok(&format!("check 1 2 {url} --ca-file certificate.pem"));
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn half_a_certificate_is_refused() {
    let sandbox = Sandbox::new();
    let line = "serve --http 127.0.0.1:0 --resp 127.0.0.1:0 --tls-certificates";
    assert!(
        sandbox.fails(&format!("{line} missing.pem"), 2).contains("set both tls.certificates and tls.key")
    );
    assert!(sandbox.fails(&format!("{line} missing.pem --tls-key key.pem"), 1).contains("missing.pem"));
}
