//! `apply`: answers in order, each once it is durable.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use crate::support::Sandbox;

#[test]
fn every_line_is_answered_in_order() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(10_000);
    let input = format!(
        "follow 1 2\nfollow 1 2\nunfollow 1 2\n\nunfollow 1 2\nfollow 3 3\nfollow 1\n{long}\nfollow 1 \u{fffd}\nfollow 4 5"
    );
    let run = sandbox.run_with_input("apply", input);
    let answers: Vec<String> =
        run.stdout.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        answers,
        [
            "ok changed",
            "ok unchanged",
            "ok changed",
            "error invalid_input",
            "ok unchanged",
            "error self_follow",
            "error invalid_input",
            "error invalid_input",
            "error invalid_id",
            "ok changed"
        ]
    );
    assert_eq!(run.status, 1, "some lines were refused");
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 2);
}

#[test]
fn a_token_is_good_for_changes() {
    let sandbox = Sandbox::new();
    let run = sandbox.run_with_input("apply", "follow 1 2\nfollow 1 3\n");
    assert_eq!(run.status, 0);
    let token = run.stdout.lines().next().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(sandbox.json(&format!("changes --after {token}"))["items"][0]["followee"], "3");
}

#[test]
fn many_lines_at_once_keep_their_order() {
    let sandbox = Sandbox::new();
    // Each pair is followed and unfollowed in turn, so that any change of order would change an answer.
    let input: String = (0..20_000)
        .map(|number| {
            let action = if number / 10 % 2 == 0 { "follow" } else { "unfollow" };
            format!("{action} {} 1000\n", number % 10)
        })
        .collect();
    let run = sandbox.run_with_input("apply", input);
    assert_eq!(run.status, 0);
    assert_eq!(run.stdout.lines().count(), 20_000);
    assert!(run.stdout.lines().all(|line| line.starts_with("ok changed ")));
    assert_eq!(sandbox.json("counts 1000")["followers"], 0);
}

#[test]
fn an_answer_does_not_wait_for_more_input() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.spawn("apply");
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for followee in 2..20 {
        input.write_all(format!("follow 1 {followee}\n").as_bytes()).unwrap();
        assert!(answers.next().unwrap().unwrap().starts_with("ok changed "));
    }
    drop(input);
    assert!(answers.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_was_answered_survives_a_kill() {
    let sandbox = Sandbox::new();
    for round in 1..=5 {
        let mut child = sandbox.spawn("apply");
        let mut input = child.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || {
            for followee in 1_000..50_000 {
                if input.write_all(format!("follow {round} {followee}\n").as_bytes()).is_err() {
                    return;
                }
            }
        });
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = round * 300;
        let answered = answers
            .by_ref()
            .take(wanted)
            .filter(|line| line.as_ref().is_ok_and(|line| line.starts_with("ok")))
            .count();
        child.kill().unwrap();
        // What was written before the kill arrived counts as well.
        let answered = answered
            + answers.map_while(Result::ok).filter(|line| line.starts_with("ok ") && line.len() > 40).count();
        child.wait().unwrap();
        feeder.join().unwrap();
        let kept = sandbox.json(&format!("counts {round}"))["following"].as_u64().unwrap();
        assert!(answered >= wanted && kept >= answered as u64, "round {round}: {kept} of {answered}");
    }
    assert_eq!(sandbox.json("verify")["difference_count"], 0);
}

#[test]
fn sigterm_ends_it_as_the_end_of_input_does() {
    let sandbox = Sandbox::new();
    for signal in ["TERM", "INT"] {
        let mut child = sandbox.spawn("apply");
        let mut input = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        input.write_all(b"follow 1 2\n").unwrap();
        assert!(answers.next().unwrap().unwrap().starts_with("ok "));
        let sent =
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert!(child.wait().unwrap().success(), "{signal}");
        assert!(answers.next().is_none());
    }
    sandbox.ok("check 1 2");
}
