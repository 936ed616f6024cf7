//! A `kinfolk.toml` that only lies in the working folder sends no credential elsewhere.

use super::running::Running;
use crate::support::{Run, Sandbox};

/// A server on this machine, under a name that does not say so.
struct Elsewhere {
    server: Running,
    sandbox: Sandbox,
    url: String,
    key: String,
}

impl Elsewhere {
    fn start() -> Self {
        let sandbox = Sandbox::new();
        let key = sandbox.ok("keys add tool --scopes read --file keys.toml").trim().to_owned();
        let server = Running::start(&sandbox, "--auth-keys keys.toml");
        let url = server.http.replace("127.0.0.1", "0.0.0.0");
        Self { server, sandbox, url, key }
    }

    /// A folder with a configuration file, and a key outside of it.
    fn folder(&self, file: &str) -> Sandbox {
        let folder = Sandbox::new();
        folder.write("kinfolk.toml", file.replace("URL", &self.url));
        self.sandbox.write("key", &self.key);
        folder
    }

    fn key_file(&self) -> String {
        self.sandbox.path("key").display().to_string()
    }
}

/// Runs a check with some variables set.
fn check(folder: &Sandbox, flags: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = folder.command(format!("check 1 2 {flags}").split_whitespace());
    command.env_remove("KINFOLK_DATA").envs(variables.iter().copied());
    Run::from(command.output().unwrap())
}

fn is_refused(run: &Run, parts: &[&str]) {
    let message = run.failure(2);
    parts.iter().for_each(|part| assert!(message.contains(part), "{message} lacks {part}"));
}

/// The server has answered: no.
fn is_answered(run: &Run) {
    assert_eq!((run.status, run.stdout.as_str()), (1, "no\n"), "{run:?}");
}

#[test]
fn a_found_file_does_not_say_where_a_credential_goes() {
    let elsewhere = Elsewhere::start();
    let folder = elsewhere.folder("[client]\nurl = \"URL\"\n");
    let (url, key, key_file) = (&elsewhere.url, &elsewhere.key, elsewhere.key_file());
    let variable = [("KINFOLK_API_KEY", key.as_str())];
    is_refused(
        &check(&folder, "", &variable),
        &["kinfolk.toml:2", "KINFOLK_API_KEY", "--url URL", "--config kinfolk.toml"],
    );
    is_refused(&check(&folder, &format!("--api-key-file {key_file}"), &[]), &["kinfolk.toml:2", &key_file]);
    is_refused(&check(&folder, "", &[("KINFOLK_API_KEY_FILE", &key_file)]), &[&key_file]);
    // Named, it may.
    is_answered(&check(&folder, &format!("--url {url}"), &variable));
    is_answered(&check(&folder, "--config kinfolk.toml", &variable));
    is_answered(&check(&folder, "", &[variable[0], ("KINFOLK_CONFIG", "kinfolk.toml")]));
    is_answered(&check(&folder, "", &[variable[0], ("KINFOLK_URL", url)]));
    // There is nothing to lose without a credential, nor on this machine.
    assert!(check(&folder, "", &[]).failure(1).contains("credential"));
    let here = elsewhere.folder(&format!("[client]\nurl = \"{}\"\n", elsewhere.server.http));
    is_answered(&check(&here, "", &variable));
    // Commands that ask nobody are not concerned.
    let mut command = folder.command(["config"]);
    assert!(command.env("KINFOLK_API_KEY", key).status().unwrap().success());
}

#[test]
fn a_found_file_sends_the_key_of_its_own_folder_only() {
    let elsewhere = Elsewhere::start();
    let (url, key, key_file) = (&elsewhere.url, &elsewhere.key, elsewhere.key_file());
    let own = elsewhere.folder("[client]\nurl = \"URL\"\napi_key_file = \"./own\"\n");
    own.write("own", key);
    is_answered(&check(&own, "", &[]));
    // Whatever else it names may be anything that the user can read.
    let foreign = elsewhere.folder(&format!("[client]\nurl = \"URL\"\napi_key_file = \"{key_file}\"\n"));
    is_refused(&check(&foreign, "", &[]), &["kinfolk.toml:2", &key_file]);
    let linked = elsewhere.folder("[client]\nurl = \"URL\"\napi_key_file = \"./own\"\n");
    std::os::unix::fs::symlink(&key_file, linked.path("own")).unwrap();
    is_refused(&check(&linked, "", &[]), &["kinfolk.toml:2", "./own"]);
    let endless = elsewhere.folder("[client]\nurl = \"URL\"\napi_key_file = \"/dev/zero\"\n");
    assert!(check(&endless, "", &[]).failure(1).contains("larger than 64 KiB"));

    let key_only = elsewhere.folder("[client]\napi_key_file = \"./own\"\n");
    key_only.write("own", key);
    is_refused(
        &check(&key_only, "", &[("KINFOLK_URL", url)]),
        &["kinfolk.toml:2", "KINFOLK_URL", "--url URL"],
    );
    is_answered(&check(&key_only, &format!("--url {url}"), &[]));
}

#[test]
fn a_found_file_does_not_say_whose_certificates_count() {
    let elsewhere = Elsewhere::start();
    let (url, key) = (&elsewhere.url, &elsewhere.key);
    let folder = elsewhere.folder("[client]\nca_file = \"ca.pem\"\n");
    folder.write("ca.pem", rcgen::generate_simple_self_signed(["0.0.0.0".to_owned()]).unwrap().cert.pem());
    let variable = [("KINFOLK_API_KEY", key.as_str())];
    let flags = format!("--url {url}");
    is_refused(&check(&folder, &flags, &variable), &["kinfolk.toml:2", "certificates", "--ca-file FILE"]);
    is_answered(&check(&folder, &format!("{flags} --ca-file ca.pem"), &variable));
    is_answered(&check(&folder, &format!("{flags} --config kinfolk.toml"), &variable));
    assert!(check(&folder, &flags, &[]).failure(1).contains("credential"));
}
