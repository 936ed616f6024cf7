//! `rest`: checks over HTTP, one and a hundred in a request, loaded by wrk.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::dataset::Dataset;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::process::run as run_program;
use crate::server::{Server, cpu_seconds};

const NAME: &str = "rest";
const PAIRS: u64 = 100;
const CONNECTIONS: u64 = 32;

const ROWS: &[Row] = &[
    Row::new("bulk", "POST /v1/check of 100 pairs, checks", "/s").target(Target::AtLeast(1_000_000.0)),
    Row::new("bulk_cpu", "server CPU a check, 100 in a request", "µs"),
    Row::new("one", "GET /v1/users/{id}/following/{target}", "/s"),
    Row::new("one_cpu", "server CPU a check, one in a request", "µs"),
];

pub fn run(options: &Options) -> Result<()> {
    run_program(Command::new("scripts/install").arg("wrk"))?;
    let data = Dataset::prepare(options)?;
    let server = Server::start(data.kinfolk(), &data.store_folder()?)?;
    let script = data.folder().join("wrk.lua");
    let users = data.survey.users;
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        for (key, pairs, body) in [("bulk", PAIRS, bulk(users.last)), ("one", 1, one(users.last))] {
            fs::write(&script, format!("{}\n{body}", header(&server.key)))?;
            let before = cpu_seconds(server.process());
            let (requests, per_second) = wrk(options, &server, &script)?;
            let cpu = cpu_seconds(server.process()) - before;
            recorder.record(key, per_second * pairs as f64);
            recorder.record(&format!("{key}_cpu"), cpu * 1e6 / (requests * pairs) as f64);
        }
    }
    server.stop()?;
    let notes = vec![
        format!("wrk with one thread and {CONNECTIONS} connections, on the same cores"),
        "with an API key, a rate limit and metrics".to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn header(key: &str) -> String {
    format!("wrk.headers[\"Authorization\"] = \"Bearer {key}\"")
}

/// A thousand requests are made up before the load begins, so that the client's work is small.
fn bulk(last: u64) -> String {
    format!(
        "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nlocal requests = {{}}\n\
         function init(args)\n  for r = 1, 1000 do\n    local pairs = {{}}\n    for p = 1, {PAIRS} do\n      \
         pairs[p] = string.format('[\"%d\",\"%d\"]', math.random(1, {last}), math.random(1, {last}))\n    end\n    \
         requests[r] = wrk.format(nil, \"/v1/check\", nil, '{{\"pairs\":[' .. table.concat(pairs, ',') .. ']}}')\n  \
         end\nend\nlocal r = 0\nfunction request()\n  r = r % 1000 + 1\n  return requests[r]\nend\n"
    )
}

fn one(last: u64) -> String {
    format!(
        "local requests = {{}}\nfunction init(args)\n  for r = 1, 10000 do\n    requests[r] = wrk.format(\"GET\", \
         string.format('/v1/users/%d/following/%d', math.random(1, {last}), math.random(1, {last})))\n  end\nend\n\
         local r = 0\nfunction request()\n  r = r % 10000 + 1\n  return requests[r]\nend\n"
    )
}

/// How many requests were answered well, in all and a second.
fn wrk(options: &Options, server: &Server, script: &Path) -> Result<(u64, f64)> {
    let printed = run_program(
        Command::new("wrk")
            .arg("--threads=1")
            .arg(format!("--connections={CONNECTIONS}"))
            .arg(format!("--duration={}s", options.seconds))
            .arg("--script")
            .arg(script)
            .arg(format!("http://{}", server.http)),
    )?;
    parse(&printed).with_context(|| format!("wrk printed no rate, or errors: {printed}"))
}

fn parse(printed: &str) -> Option<(u64, f64)> {
    if printed.contains("Non-2xx") || printed.contains("Socket errors") {
        return None;
    }
    let requests = printed.lines().find_map(|line| line.trim().split_once(" requests in"))?.0.parse().ok()?;
    let rate = printed.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"))?;
    Some((requests, rate.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_prints_is_read() {
        let printed = "  1 threads and 32 connections\n  150000 requests in 10.00s, 20.00MB read\n\
                       Requests/sec:  15000.50\nTransfer/sec:      2.00MB\n";
        assert_eq!(parse(printed), Some((150_000, 15_000.5)));
        assert_eq!(parse(&format!("{printed}  Non-2xx or 3xx responses: 5\n")), None);
    }
}
