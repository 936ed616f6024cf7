//! Runs the binary under `strace`, which records what it does to files or makes some of it fail. Reading a record
//! is in `power/trace.rs`.

use std::path::Path;
use std::process::{Command, Stdio};

use super::program;

/// The calls that change files, those without which a record of them would be misread, and those that answer clients. A `?` lets `strace` pass
/// over a call that the machine does not have.
const CALLS: &str = "?open,openat,?creat,close,dup,?dup2,dup3,fcntl,lseek,read,readv,write,pwrite64,writev,\
    pwritev,pwritev2,ftruncate,truncate,fallocate,?rename,?renameat,renameat2,?unlink,unlinkat,?mkdir,mkdirat,\
    ?rmdir,?link,linkat,?symlink,symlinkat,fsync,fdatasync,sync,syncfs,sync_file_range,copy_file_range,sendfile,\
    splice,mmap,io_uring_setup,sendto,sendmsg";

/// A failure that the tracer plants.
pub struct Injection<'a> {
    /// Which calls, as `strace` names them.
    pub calls: &'a str,
    pub error: &'a str,
    /// Which occurrence in each thread, for example `3`, or `3+` for it and all later ones.
    pub when: String,
    /// Only calls on this file; then only they are recorded too.
    pub path: Option<&'a Path>,
}

/// Whether `strace` works here. If not: says so, and fails where the tools are required.
pub fn available(test: &str) -> bool {
    let works = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "trace=fsync", program::binary(), "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        assert!(
            std::env::var_os("KINFOLK_REQUIRE_FAULT_TOOLS").is_none(),
            "{test}: strace is missing or not permitted: install it, and allow ptrace"
        );
        println!("{test}: NOT RUN, strace is missing or not permitted");
    }
    works
}

/// Runs the program as this command would, killed before one of these calls, counted in each thread. Returns whether it was reached.
pub fn kill_before(calls: &str, when: usize, command: &Command) -> bool {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    traced.args(["-e", &format!("inject={calls}:signal=KILL:when={when}")]);
    traced.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        traced.current_dir(folder);
    }
    traced.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    !traced.status().expect("strace can be started").success()
}

/// `kinfolk` with these arguments under the tracer, which writes to `record`.
pub fn command(record: &Path, arguments: &[String], injection: Option<&Injection<'_>>) -> Command {
    let mut command = Command::new("strace");
    // Strings in hexadecimal and whole; no padding; only the chosen calls stop the program.
    command.args(["-f", "--seccomp-bpf", "-xx", "-a", "0", "-s", "33554432", "-o"]).arg(record);
    command.args(["-e", "signal=none", "-e", &format!("trace={CALLS}")]);
    if let Some(Injection { calls, error, when, path }) = injection {
        command.args(["-e", &format!("inject={calls}:error={error}:when={when}")]);
        if let Some(path) = path {
            command.arg("-P").arg(path);
        }
    }
    command.arg(program::binary()).args(arguments);
    command
}
