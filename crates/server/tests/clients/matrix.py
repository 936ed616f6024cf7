"""Runs client libraries against servers, and makes a table of what works: python matrix.py [--write] LIBRARY...

Each program prints a line for each step: the feature, `yes`, `no` or `failed`, and a reason. See README.md of this folder.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import resp
import servers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
INSTALLED = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "clients"
PAGE = ROOT / "docs" / "clients.md"
SECONDS_MAX = 300

FEATURES = {
    "defaults": "connects with its defaults",
    "resp2": "RESP2",
    "resp3": "RESP3",
    "check": "`SISMEMBER`",
    "bulk": "`SMISMEMBER`",
    "follow": "`SADD` and `SREM`",
    "counts": "`SCARD`",
    "members": "`SMEMBERS`",
    "intersect": "`SINTER` and `SINTERCARD`",
    "scan": "iteration with `SSCAN`",
    "pipeline": "a pipeline of 2,001 commands",
    "multi": "`MULTI` and `EXEC`",
    "own": "Kinfolk's own commands",
    "errors": "errors as the library's own",
    "key": "an API key",
    "tls": "TLS",
    "cache": "client-side caching under churn",
}

# What a "yes" or a failure does not say.
NOTES = {
    ("rueidis", "resp2"): "with `DisableCache`, which the library demands for RESP2",
    ("Lettuce", "cache"): "with a map of the caller's: the library's `CacheFrontend` reads strings only",
    ("fred", "cache"): "with a map of the caller's: the library reports invalidations",
    ("hiredis", "cache"): "with a table of the caller's: the library reports invalidations",
    ("redis-rs", "cache"): "run without reads and writes of a set that overlap: its experimental cache keeps a reply that "
    "an invalidation has overtaken, with Redis as well",
}


def java(main, version):
    return lambda: ["java", "-cp", (INSTALLED / "java" / "classpath").read_text(), main, version]


def pinned(file, pattern):
    return re.search(pattern, (HERE / file).read_text(), re.DOTALL).group(1)


LIBRARIES = {
    "redis-py": lambda: [INSTALLED / "venv/bin/python", HERE / "python_client.py", "redis"],
    "valkey-py": lambda: [INSTALLED / "venv/bin/python", HERE / "python_client.py", "valkey"],
    "node-redis": lambda: ["node", HERE / "node_redis.mjs"],
    "ioredis": lambda: ["node", HERE / "ioredis.mjs"],
    "hiredis": lambda: [INSTALLED / "hiredis/client"],
    "go-redis": lambda: [INSTALLED / "go/bin/goredis"],
    "rueidis": lambda: [INSTALLED / "go/bin/rueidis"],
    "Jedis": java("JedisClient", pinned("java/pom.xml", r"<artifactId>jedis</artifactId><version>([^<]*)")),
    "Lettuce": java("LettuceClient", pinned("java/pom.xml", r"<artifactId>lettuce-core</artifactId><version>([^<]*)")),
    "redis-rs": lambda: [INSTALLED / "rust/target/debug/redis_rs", pinned("rust/Cargo.toml", r'\nredis = \{ version = "=([^"]*)')],
    "fred": lambda: [INSTALLED / "rust/target/debug/fred", pinned("rust/Cargo.toml", r'\nfred = \{ version = "=([^"]*)')],
}


@contextlib.contextmanager
def environment():
    """Three servers, and what the programs have to know of them: one is open, one wants a key, one is encrypted."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        certificate, private = folder / "certificate.pem", folder / "private.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
            + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
            + ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", private, "-out", certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        keys = folder / "keys.toml"
        add = [servers.binary(), "keys", "add", "clients", "--scopes", "read,write", "--file", keys]
        key = subprocess.run(add, check=True, capture_output=True, text=True).stdout.split()[0]
        plain = stack.enter_context(servers.kinfolk())
        guarded = stack.enter_context(servers.kinfolk("--auth-keys", keys))
        encrypted = stack.enter_context(servers.kinfolk("--tls-certificates", certificate, "--tls-key", private))
        variables = {
            "PORT": plain.port, "KEY_PORT": guarded.port, "KEY": key, "TLS_PORT": encrypted.port, "TLS_CA": certificate,
            "FOLLOWERS": 1,
        }  # fmt: skip
        if tracks(plain.port):
            variables["CACHE"] = 1
        yield {name: str(value) for name, value in variables.items()}


def tracks(port):
    connection = resp.Connection(port)
    connection.ask("HELLO", 3)
    reply = connection.ask("CLIENT", "TRACKING", "ON")
    connection.close()
    return reply == ("+", b"OK")


def run(library, number, variables):
    """What a program found: its version, and for each feature yes, no or failed, with a reason."""
    results = {}
    variables = {**os.environ, **variables, "USERS": str((number + 1) * 1_000_000), "RUST_BACKTRACE": "0"}
    command = [str(word) for word in LIBRARIES[library]()]
    try:
        output = subprocess.run(command, env=variables, cwd=INSTALLED, timeout=SECONDS_MAX, capture_output=True, text=True)
        lines, stderr, status = output.stdout.splitlines(), output.stderr, output.returncode
    except subprocess.TimeoutExpired as late:
        lines, stderr, status = (late.stdout or b"").decode().splitlines(), "", f"more than {SECONDS_MAX} s"
    version = ""
    for line in lines:
        feature, verdict, *reason = line.split(" ", 2)
        if feature == "version":
            version = verdict
        elif feature in FEATURES:
            # With several protocols, the worst counts.
            worst = max(results.get(feature, ("yes", "")), (verdict, "".join(reason)), key=lambda result: "yes no failed".split().index(result[0]))
            results[feature] = worst
    for feature in FEATURES:
        results.setdefault(feature, ("failed", f"the program ended first, with status {status}: {stderr.strip()[-300:]}"))
    return version, results


def table(found):
    """The page's table, and the notes below it."""
    notes = []

    def cell(library, feature):
        verdict, reason = found[library][1][feature]
        note = "; ".join(part for part in (reason, NOTES.get((library, feature))) if part)
        if note and note not in notes:
            notes.append(note)
        mark = {"yes": "yes", "no": "–", "failed": "FAILS"}[verdict]
        return f"{mark} [{notes.index(note) + 1}]" if note else mark

    lines = ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    lines.append("| version | " + " | ".join(version for version, _ in found.values()) + " |")
    for feature, description in FEATURES.items():
        lines.append(f"| {description} | " + " | ".join(cell(library, feature) for library in found) + " |")
    lines += [""] + [f"{number}. {note[0].upper()}{note[1:]}." for number, note in enumerate(notes, 1)]
    return "\n".join(lines)


def write(text):
    start, end = "<!-- scripts/clients --all writes this table -->", "<!-- the end of the table -->"
    page = PAGE.read_text()
    before, after = page.split(start)[0], page.split(end)[1]
    PAGE.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}")


def main(arguments):
    names = [name for name in arguments if name != "--write"]
    found = {}
    with environment() as variables:
        for number, library in enumerate(names):
            found[library] = run(library, number, variables)
            version, results = found[library]
            count = sum(verdict == "yes" for verdict, _ in results.values())
            print(f"{library} {version}: {count} of {len(FEATURES)} features work", flush=True)
            for feature, (verdict, reason) in results.items():
                if verdict != "yes":
                    print(f"    {feature}: {verdict}, {reason}", flush=True)
    if "--write" in arguments:
        write(table(found))
    failures = sum(verdict == "failed" for _, results in found.values() for verdict, _ in results.values())
    print(f"{len(found)} libraries, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
