//! A real file system of a few megabytes that only some processes see, to be filled up.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The disk, for as long as this lives. It needs no rights where the system allows namespaces.
pub struct SmallDisk {
    holder: Child,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    /// A disk of so many bytes; none where mounting in a namespace is not permitted.
    pub fn new(bytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().canonicalize().expect("the folder exists").join("disk");
        std::fs::create_dir(&path).expect("a new folder");
        let script = "mount -t tmpfs -o size=$1 kinfolk \"$2\" && echo mounted && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script, "sh", &bytes.to_string()])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let said = BufReader::new(holder.stdout.take().expect("stdout is piped")).read_line(&mut line);
        let disk = Self { holder, path, _folder: folder };
        let is_mounted = said.is_ok() && line == "mounted\n";
        let can_enter = || disk.command("true").status().is_ok_and(|status| status.success());
        (is_mounted && can_enter()).then_some(disk)
    }

    /// Where it is, for processes that see it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A program that sees the disk, not started yet.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let target = self.holder.id().to_string();
        command.args(["--target", &target, "--user", "--mount", "--preserve-credentials", program]);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("KINFOLK_"))
        {
            command.env_remove(name);
        }
        command
    }

    /// Takes all space that is left.
    pub fn fill(&self) {
        let filled = self.shell("cat /dev/zero 2>&1 > filler");
        assert!(filled.contains("No space left"), "{filled}");
        let left = self.shell("df --output=avail . | tail -1");
        assert_eq!(left.trim(), "0", "it is full");
    }

    /// Gives it back.
    pub fn free(&self) {
        self.shell("rm filler");
    }

    fn shell(&self, script: &str) -> String {
        let mut command = self.command("sh");
        command.args(["-c", &format!("cd \"$1\" && {script}"), "sh"]).arg(&self.path).env("LC_ALL", "C");
        let output = command.output().expect("the shell can be started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}
