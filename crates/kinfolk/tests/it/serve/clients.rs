//! The snippets of `docs/clients.md`, the Redis clients of `scripts/clients` and the comparison of `scripts/differential`, run by
//! the real tools against real servers.
//!
//! `scripts/install-clients` installs the tools into `target/clients`; where one is missing, its snippets are left out, unless
//! `KINFOLK_REQUIRE_CLIENTS` is set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::running::Running;
use crate::support::Sandbox;

/// A snippet and what runs it.
struct Snippet {
    /// As the page says, such as `python redis`.
    language: String,
    text: String,
}

fn snippets() -> Vec<Snippet> {
    let page = fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks
        .map(|block| {
            let (language, text) = block.split_once('\n').unwrap();
            Snippet { language: language.to_owned(), text: text.to_owned() }
        })
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where `scripts/install-clients` has put the libraries.
fn installed() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("clients")
}

/// The command that runs a snippet, if the tool is there.
fn command(sandbox: &Sandbox, snippet: &Snippet) -> Option<Command> {
    let works = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let (program, check, file): (PathBuf, &[&str], &str) = match snippet.language.as_str() {
        "sh curl" => ("sh".into(), &["-c", "curl --version"], "curl.sh"),
        "sh redis-cli" => ("sh".into(), &["-c", "redis-cli --version"], "redis-cli.sh"),
        "python redis" => (installed().join("venv/bin/python"), &["-c", "import redis"], "redis.py"),
        "python http" => ("python3".into(), &["--version"], "http.py"),
        "javascript redis" | "javascript http" => ("node".into(), &["--version"], "snippet.mjs"),
        other => panic!("nothing runs {other}"),
    };
    let needs_module = snippet.language == "javascript redis";
    let is_there =
        works(&program, check) && (!needs_module || installed().join("node_modules/redis").exists());
    if !is_there {
        assert!(
            std::env::var_os("KINFOLK_REQUIRE_CLIENTS").is_none(),
            "{}: the tool is missing; run scripts/install-clients",
            snippet.language
        );
        println!("{}: NOT RUN, the tool is missing", snippet.language);
        return None;
    }
    // A module is looked for beside the program that wants it.
    let path = if needs_module {
        let path = installed().join(format!("snippet-{}.mjs", std::process::id()));
        fs::write(&path, &snippet.text).unwrap();
        path
    } else {
        sandbox.write(&format!("snippet-{file}"), &snippet.text)
    };
    let mut command = Command::new(program);
    if snippet.language.starts_with("sh") {
        command.arg("-eu");
    }
    command.arg(path);
    Some(command)
}

#[test]
fn every_snippet_works() {
    let snippets = snippets();
    assert_eq!(snippets.len(), 6);
    for snippet in snippets {
        let sandbox = Sandbox::new();
        let Some(mut command) = command(&sandbox, &snippet) else { continue };
        let server = Running::start(&sandbox, "");
        let port = server.resp.rsplit(':').next().unwrap();
        let output = command.env("HTTP", &server.http).env("REDIS_PORT", port).output().unwrap();
        assert!(output.status.success(), "{}\n{}\n{output:?}", snippet.language, snippet.text);
        let (status, said) = server.end("TERM");
        assert_eq!(status, 0, "{}: {said:?}", snippet.language);
    }
}

#[test]
fn redis_clients_work() {
    run_script("scripts/clients", &[]);
}

/// A short run; `scripts/differential` alone sends 100,000 commands.
#[test]
fn set_commands_reply_like_redis() {
    run_script("scripts/differential", &["5000"]);
}

/// Runs a script that starts servers of its own, if the libraries are installed.
fn run_script(script: &str, arguments: &[&str]) {
    let libraries = ["venv/bin/python", "node_modules/redis", "node_modules/ioredis", "hiredis/client"];
    let programs = ["redis-benchmark", "redis-server"];
    let is_there = libraries.iter().all(|part| installed().join(part).exists())
        && programs.iter().all(|program| Command::new(program).arg("--version").output().is_ok());
    if !is_there {
        assert!(
            std::env::var_os("KINFOLK_REQUIRE_CLIENTS").is_none(),
            "a Redis client is missing; run scripts/install-clients"
        );
        println!("{script}: NOT RUN, a Redis client is missing");
        return;
    }
    let mut command = Command::new(root().join(script));
    let output =
        command.args(arguments).env("KINFOLK_BINARY", env!("CARGO_BIN_EXE_kinfolk")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
