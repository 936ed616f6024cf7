//! The examples of `docs/operating/command-line.md` work as they stand.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::Sandbox;

#[test]
fn every_example_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/command-line.md");
    let text = fs::read_to_string(page).unwrap();
    let sandbox = Sandbox::new();
    let program = Path::new(env!("CARGO_BIN_EXE_kinfolk")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut examples = 0;
    for block in text.split("```sh\n").skip(1) {
        let script = block.split("```").next().unwrap();
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(sandbox.path(""))
            .env("PATH", &path)
            .env("KINFOLK_DATA", "./kinfolk-data")
            .env_remove("KINFOLK_URL")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{stderr}");
        assert!(!stderr.contains("kinfolk: "), "{script}\n{stderr}");
        examples += 1;
    }
    assert_eq!(examples, 11);
}
