//! `plan`: figures for half a billion users, for a small fleet, and what it refuses.

use serde_json::Value;

use crate::support::Sandbox;

/// The value of a line.
fn value(plan: &Value, name: &str) -> Value {
    let sections = plan["sections"].as_array().unwrap();
    let mut lines = sections.iter().flat_map(|section| section["lines"].as_array().unwrap());
    lines.find(|line| line["name"] == name).unwrap()["value"].clone()
}

fn notes(plan: &Value) -> String {
    plan["notes"].to_string()
}

#[test]
fn half_a_billion_users() {
    let sandbox = Sandbox::new();
    let text = sandbox.ok("plan");
    for part in
        ["200,000,000,000  exact", "359.4 GB", "of 256: 16 GiB (--filter-memory)", "disk decides", "in 3 y"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let plan = sandbox.json("plan");
    assert_eq!(value(&plan, "edges"), 200_000_000_000_u64);
    assert_eq!(value(&plan, "the same at 0.1 %").as_u64().unwrap() / 1_000_000_000, 359);
    assert!(notes(&plan).contains("the filters of 200,000,000,000 edges do not fit"));
    assert_eq!(plan["growth"][2]["edges"], 439_400_000_000_u64);
    assert!(!sandbox.path("kinfolk-data").exists(), "it opens nothing");
}

#[test]
fn every_line_has_a_formula_and_says_what_it_rests_on() {
    let plan = Sandbox::new().json("plan --ids uuid");
    assert_eq!(plan["workload"]["ids"], "uuid");
    for section in plan["sections"].as_array().unwrap() {
        for line in section["lines"].as_array().unwrap() {
            assert!(!line["formula"].as_str().unwrap().is_empty(), "{line}");
            assert!(["exact", "measured", "assumed"].contains(&line["basis"].as_str().unwrap()), "{line}");
            assert!(line["value"].is_number() && line["unit"].is_string(), "{line}");
        }
    }
}

#[test]
fn a_small_fleet_has_one_host() {
    let plan = Sandbox::new().json("plan --users 1_000_000 --checks-per-second 2000 --writes-per-second 200");
    assert_eq!((value(&plan, "hosts"), value(&plan, "servers")), (1.into(), 2.into()));
    assert_eq!((value(&plan, "logical shards"), value(&plan, "shards covered")), (256.into(), 256.into()));
    assert!(notes(&plan).contains("the filters of all 400,000,000 edges fit"), "{}", notes(&plan));
    assert_eq!(plan["growth"][2]["hosts"], 1);
}

#[test]
fn what_it_can_do_little_about_is_noted() {
    let sandbox = Sandbox::new();
    let plan = sandbox.json("plan --users 2_000_000_000");
    assert!(notes(&plan).contains("1,758 shards would be needed, and 512 are possible"), "{}", notes(&plan));
    let plan = sandbox.json("plan --host-writes 100");
    assert!(notes(&plan).contains("1,200 hosts can't share 256 shards"), "{}", notes(&plan));
    let plan = sandbox.json("plan --writes-per-second 1000");
    assert!(notes(&plan).contains("1,000 writes/s can't bring the growth"), "{}", notes(&plan));
    let plan = sandbox.json("plan --cache-hits 0 --active 0 --filter-memory 0");
    assert_eq!(value(&plan, "reach the shards"), 1_160_000);
}

#[test]
fn the_configuration_counts() {
    let sandbox = Sandbox::configured("[log]\nkeep = \"1 d\"\n[redis]\nkeep = \"2 h\"\n");
    let plan = sandbox.json("plan");
    assert_eq!(value(&plan, "change log"), 60_000_u64 * 86_400 * 125);
    assert_eq!(value(&plan, "fills"), 6_945);
    assert_eq!(value(&sandbox.json("plan --log-days 2"), "change log"), 60_000_u64 * 2 * 86_400 * 125);
}

#[test]
fn nonsense_is_refused() {
    let sandbox = Sandbox::new();
    for (arguments, part) in [
        ("--users 0", "expected a whole number from 1 to 100000000000"),
        ("--users=-5", "expected a whole number from 1"),
        ("--users 1e9", "expected a whole number from 1"),
        ("--users 99999999999999999999", "expected a whole number from 1"),
        ("--following 10001", "from 1 to 10000"),
        ("--shards 513", "from 1 to 512"),
        ("--peak 0.5", "from 1 to 100"),
        ("--peak NaN", "from 1 to 100"),
        ("--negative 1.1", "from 0 to 1"),
        ("--disk-free 1", "from 0 to 0.9"),
        ("--host-disk 0", "at least 1 MiB"),
        ("--host-memory many", "expected a size"),
        ("--ids words", "expected integer or uuid"),
        ("--users 100_000_000_000 --following 10_000 --growth 1000", "would not fit in 64 bits"),
        ("--writes-per-second 1_000_000_000_000 --log-days 3650", "would not fit in 64 bits"),
    ] {
        let message = sandbox.fails(&format!("plan {arguments}"), 2);
        assert!(message.contains(part), "{arguments}: {message}");
    }
}
