"""Servers for the programs of this folder: Kinfolk and Redis, each on a free loopback port with a folder of its own."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds: far longer than a start takes


def binary():
    """The server under test: KINFOLK_BINARY, or that of a debug build."""
    root = pathlib.Path(__file__).resolve().parents[4]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return str(pathlib.Path(os.environ.get("KINFOLK_BINARY", target / "debug" / "kinfolk")).resolve())


class Kinfolk:
    """A running Kinfolk: the address of REST, and the port of RESP."""

    def __init__(self, http, port):
        self.http = http
        self.port = port


@contextlib.contextmanager
def kinfolk(*arguments):
    """Serves an empty graph with further arguments of `kinfolk serve`."""
    folder = pathlib.Path(tempfile.mkdtemp())
    log = folder / "log"
    line = [binary(), "serve", "--data", "graph", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", *arguments]
    with log.open("w") as stderr:
        process = subprocess.Popen(line, cwd=folder, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr)
    try:
        yield wait_until(lambda: ready(log.read_text()), process, log)
        if process.poll() is not None:
            raise SystemExit(f"kinfolk has ended:\n{log.read_text()}")
    finally:
        stop(process, folder)


def ready(text):
    """What the line "kinfolk: ready: http://…, redis://…" says, once it is there."""
    for line in text.splitlines(keepends=True):
        if line.startswith("kinfolk: ready: ") and line.endswith("\n"):
            http, resp = line.removeprefix("kinfolk: ready: ").replace(",", " ").split()[:2]
            return Kinfolk(http, int(resp.rsplit(":", 1)[1]))
    return None


@contextlib.contextmanager
def redis():
    """Serves an empty Redis, which keeps nothing on disk; gives its port."""
    folder = pathlib.Path(tempfile.mkdtemp())
    log = folder / "log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with log.open("w") as stdout:
        process = subprocess.Popen(line, cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stdout)
    try:
        wait_until(lambda: "Ready to accept connections" in log.read_text(), process, log)
        yield port
    finally:
        stop(process, folder)


def wait_until(found, process, log):
    """What `found` gives, as soon as it is something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        result = found()
        if result:
            return result
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise SystemExit(f"{process.args[0]} did not start:\n{log.read_text()}")


def stop(process, folder):
    process.terminate()
    process.wait(PATIENCE)
    shutil.rmtree(folder, ignore_errors=True)
