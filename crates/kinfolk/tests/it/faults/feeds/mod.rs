//! `kill -9` of a server in the middle of fan-out: posts, deletions, follows and unfollows arrive, inboxes are filled, the
//! process goes. After every start the change log must be a prefix of what was submitted that holds all that was
//! acknowledged, and every feed, walked page by page, must be what simply sorting the posts of all followees gives.
//!
//! A crowd follows a few authors, so that a delivery takes several turns and is there to be interrupted; some of these
//! authors cross the threshold all the time. Inboxes are small, so that walks go on below them.
//!
//! The recorded run: `KINFOLK_CRASH_CYCLES=300 cargo test --release -p kinfolk --test it faults::feeds -- --nocapture`

mod connection;
mod model;

use std::thread;
use std::time::Duration;

use self::connection::{Connection, Page};
use self::model::{Feeds, Step, Steps};
use super::program::SMALL_SERVER_SETTINGS;
use super::random::Random;
use super::{number, require_none, seed};
use crate::serve::running::Running;
use crate::support::Sandbox;

/// Users who do everything: follow each other, post, read.
const ACTIVE: u64 = 24;
/// Users who only follow and read: ids from here on.
const CROWD_FROM: u64 = 1_000;
/// How many of them follow authors 1, 2 and 3.
const CROWD: [u64; 3] = [2_200, 2_190, 1_500];
/// Author 1 and 2 cross it whenever a few of the active ones come or go.
const THRESHOLD: u64 = 2_205;

#[test]
fn a_server_killed_in_the_middle_of_fan_out_keeps_every_feed_whole() {
    let seed = seed("feeds");
    let cycles = number("KINFOLK_CRASH_CYCLES", 6);
    let mut harness = Harness::new(Random::new(seed));
    for cycle in 0..cycles {
        if let Err(problem) = harness.cycle() {
            require_none("feeds", &[format!("cycle {cycle}: {problem}")]);
        }
    }
    if let Err(problem) = harness.check_at_the_end() {
        require_none("feeds", &[problem]);
    }
    let Harness { submitted, acknowledged, walks, interrupted, .. } = harness;
    println!(
        "feeds: {cycles} cycles, {submitted} steps submitted, {acknowledged} acknowledged, {walks} feeds walked, \
         {interrupted} kills with deliveries under way, 0 lost, 0 repeated"
    );
}

struct Harness {
    sandbox: Sandbox,
    random: Random,
    steps: Steps,
    feeds: Feeds,
    /// Up to here the change log is in the model.
    token: String,
    submitted: usize,
    acknowledged: usize,
    walks: usize,
    interrupted: usize,
}

/// What was submitted since the model was last compared with the log.
#[derive(Default)]
struct UnderWay {
    steps: Vec<Step>,
    acknowledged: usize,
}

impl Harness {
    fn new(random: Random) -> Self {
        let sandbox = Sandbox::new();
        let follows =
            |author: usize| (0..CROWD[author]).map(move |one| (CROWD_FROM + one, author as u64 + 1));
        let crowd: Vec<(u64, u64)> = (0..CROWD.len()).flat_map(follows).collect();
        let lines: String = crowd.iter().map(|(follower, author)| format!("{follower},{author}\n")).collect();
        sandbox.write("crowd.csv", lines);
        sandbox.ok("import crowd.csv");
        let token = sandbox.json("changes")["next"].as_str().unwrap().to_owned();
        let steps = Steps::new(random.fork(1), ACTIVE);
        let feeds = Feeds::new(crowd, THRESHOLD);
        Self { sandbox, random, steps, feeds, token, submitted: 0, acknowledged: 0, walks: 0, interrupted: 0 }
    }

    /// Starts, writes, ends, starts again and compares.
    fn cycle(&mut self) -> Result<(), String> {
        let server = self.start()?;
        // Whoever has read has an inbox, which the posts to come are then pushed into.
        let crowd: Vec<u64> = (0..CROWD[0]).map(|one| CROWD_FROM + one).collect();
        let mut connection = Connection::open(&server.resp);
        connection.warm_up(crowd.iter().copied().chain(1..=ACTIVE))?;
        let under_way = self.write_and_end(server, connection)?;
        let server = self.start()?;
        self.compare_log(&server, &under_way)?;
        self.compare_feeds(&server)?;
        // The comparison has made inboxes, which an orderly end stores: later starts go on from them.
        let signal = if self.random.once_in(3) { "TERM" } else { "KILL" };
        server.end(signal);
        Ok(())
    }

    fn start(&self) -> Result<Running, String> {
        let arguments = format!(
            "serve --http 127.0.0.1:0 --resp 127.0.0.1:0 --suggest-every 0 --fan-out-threshold {THRESHOLD} \
             --inbox-entries 8 --backfill-posts 3"
        );
        let mut command = self.sandbox.command(arguments.split_whitespace());
        command.envs(SMALL_SERVER_SETTINGS);
        Running::from_command(command).map_err(|run| format!("it did not start: {run:?}"))
    }

    /// Submits everything at once and ends the server after a random number of answers and some more microseconds.
    fn write_and_end(&mut self, server: Running, mut connection: Connection) -> Result<UnderWay, String> {
        let count = 40 + self.random.below(500);
        let steps = self.steps.take(count, &self.feeds);
        connection.send(&steps);
        let wanted = self.random.below(steps.len() + 1);
        let mut answers = connection.answers(wanted);
        // The delay is the fault, not a wait for something.
        thread::sleep(Duration::from_micros(self.random.below(4_000) as u64));
        self.interrupted += usize::from(lag(&server) > 0.0);
        let signal = if self.random.once_in(5) { "TERM" } else { "KILL" };
        server.end(signal);
        answers.extend(connection.answers(steps.len() - answers.len()));
        self.submitted += steps.len();
        self.acknowledged += answers.len();
        let mut feeds = self.feeds.clone();
        for (index, (step, answer)) in steps.iter().zip(&answers).enumerate() {
            feeds.apply(step);
            let expected = match step {
                Step::Read(user) => Some(feeds.page(*user, connection::PAGE)),
                _ => None,
            };
            match answer {
                Page::Refused(reason) => return Err(format!("step {index} {step:?} was refused: {reason}")),
                Page::Posts(found) if Some(found) != expected.as_ref() => {
                    return Err(format!("step {index} {step:?}: expected {expected:?}, found {found:?}"));
                }
                _ => {}
            }
        }
        Ok(UnderWay { acknowledged: answers.len(), steps })
    }

    /// The log must hold the effect of a prefix of the steps, all acknowledged ones included.
    fn compare_log(&mut self, server: &Running, under_way: &UnderWay) -> Result<(), String> {
        let mut feeds = self.feeds.clone();
        let mut effects = Vec::new();
        let mut acknowledged = 0;
        for (index, step) in under_way.steps.iter().enumerate() {
            if feeds.apply(step) {
                effects.push(step.clone());
                acknowledged += usize::from(index < under_way.acknowledged);
            }
        }
        let (changes, token) = changes(server, &self.token);
        let logged: Vec<Step> = changes.iter().map(model::step).collect();
        if logged.len() < acknowledged || effects.get(..logged.len()) != Some(&logged) {
            let differs = logged.iter().zip(&effects).position(|(one, other)| one != other);
            let (logged, submitted) = (logged.len(), effects.len());
            return Err(format!(
                "of {submitted} submitted changes, {acknowledged} of them acknowledged, {logged} are in the log; \
                 the first that differs is {differs:?}"
            ));
        }
        for (change, step) in changes.iter().zip(&logged) {
            self.feeds.check_delivery(change, step)?;
            self.feeds.apply(step);
        }
        self.token = token;
        Ok(())
    }

    /// Walks the feeds of all active users and of some of the crowd.
    fn compare_feeds(&mut self, server: &Running) -> Result<(), String> {
        let mut connection = Connection::open(&server.resp);
        let crowd: Vec<u64> =
            (0..25).map(|_| CROWD_FROM + self.random.below(CROWD[0] as usize) as u64).collect();
        for user in (1..=ACTIVE).chain(crowd) {
            let limit = 1 + self.random.below(40);
            let found = connection.walk(user, limit)?;
            let expected = self.feeds.page(user, usize::MAX);
            if found != expected {
                return Err(format!(
                    "the feed of {user} in pages of {limit}: {}",
                    difference(&expected, &found)
                ));
            }
            self.walks += 1;
        }
        Ok(())
    }

    /// Once all is delivered and nothing disturbs, everybody's feed is right too, and the store agrees with itself.
    fn check_at_the_end(&mut self) -> Result<(), String> {
        let server = self.start()?;
        self.compare_feeds(&server)?;
        server.end("TERM");
        let verified = self.sandbox.run("verify");
        if verified.status == 0 { Ok(()) } else { Err(format!("verify: {verified:?}")) }
    }
}

/// How many events are not delivered yet.
fn lag(server: &Running) -> f64 {
    let metrics = server.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix("kinfolk_fan_out_lag_events "));
    line.expect("the lag is a metric").parse().unwrap()
}

/// All changes after a token, and the token of the newest.
fn changes(server: &Running, after: &str) -> (Vec<serde_json::Value>, String) {
    let (mut all, mut token) = (Vec::new(), after.to_owned());
    loop {
        let page = server.get(&format!("/v1/changes?limit=1000&after={token}")).json();
        token = page["next"].as_str().expect("a page ends with a token").to_owned();
        let items = page["items"].as_array().expect("a page has items").clone();
        if items.is_empty() {
            return (all, token);
        }
        all.extend(items);
    }
}

/// Says what is missing, what is too much, and otherwise that the order is wrong.
fn difference(expected: &[u64], found: &[u64]) -> String {
    let without = |one: &[u64], other: &[u64]| -> Vec<u64> {
        one.iter().filter(|id| !other.contains(id)).copied().take(6).collect()
    };
    format!(
        "{} posts expected, {} found; missing {:?}, too much {:?}; first difference at {:?}",
        expected.len(),
        found.len(),
        without(expected, found),
        without(found, expected),
        expected.iter().zip(found).position(|(one, other)| one != other)
    )
}
