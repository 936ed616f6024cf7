//! However commands are sent, they answer the same: one by one, in pipelines that are cut anywhere, in transactions. Only where a
//! write exceeds the following limit does a transaction differ, which is whole for each follower: it is tried without one.

use kinfolk_core::graph::GraphSettings;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::backing::HAS_CONTENT;
use super::client::{Client, encode};
use super::commands::is_of_content;
use super::server::{Server, Setup};

/// Few users and a low limit, so that commands meet and some are refused.
fn command() -> impl Strategy<Value = String> {
    let id = || 1_u64..6;
    prop_oneof![
        4 => (id(), vec(id(), 1..4)).prop_map(|(user, others)| {
            format!("SADD following:{user} {}", others.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
        }),
        3 => (id(), id()).prop_map(|(user, other)| format!("SREM following:{user} {other}")),
        2 => (id(), id()).prop_map(|(user, other)| format!("FOLLOW {user} {other}")),
        2 => (id(), id()).prop_map(|(user, other)| format!("UNFOLLOW {user} {other}")),
        2 => (id(), id()).prop_map(|(user, other)| format!("SISMEMBER following:{user} {other}")),
        1 => id().prop_map(|user| format!("SMEMBERS followers:{user}")),
        1 => (id(), id()).prop_map(|(user, other)| format!("SINTER following:{user} following:{other}")),
        1 => id().prop_map(|user| format!("COUNTS {user}")),
        // Few posts as well: some are repeated, some belong to others, some are deleted already.
        3 => (id(), 0_u64..30, 0..3).prop_map(|(user, post, payload)| {
            format!("POST {user} ID {post} AT 5 PAYLOAD {payload}")
        }),
        1 => (id(), 0_u64..30).prop_map(|(user, post)| format!("POST {user} KEY {post}")),
        1 => (id(), 0_u64..30).prop_map(|(user, post)| format!("DELPOST {user} {post}")),
        1 => id().prop_map(|user| format!("FEED {user} LIMIT 1000")),
        1 => id().prop_map(|user| format!("POSTS {user} LIMIT 3")),
        1 => Just("SADD nonsense 1".to_owned()),
        1 => Just("PING".to_owned()),
    ]
}

/// How the commands of a round are sent.
#[derive(Clone, Debug)]
enum Way {
    Pipeline { cuts: Vec<prop::sample::Index> },
    Transaction,
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        3 => vec(any::<prop::sample::Index>(), 0..4).prop_map(|cuts| Way::Pipeline { cuts }),
        1 => Just(Way::Transaction),
    ]
}

fn start(following_limit: u32) -> Server {
    let graph = GraphSettings { following_limit, ..GraphSettings::default() };
    Server::with(Setup { graph, ..Setup::default() })
}

/// Tokens name positions, which may be later where writes share a commit; that there is one is what counts.
fn without_tokens(reply: &str) -> String {
    const ID_LEN_MAX: usize = 20;
    let shown = |text| if str::len(text) > ID_LEN_MAX && !text.contains(' ') { "token" } else { text };
    reply.split('"').map(shown).collect::<Vec<_>>().join("\"")
}

/// The replies, as the elements of an array.
fn send(client: &mut Client, commands: &[String], way: &Way) -> String {
    match way {
        Way::Pipeline { cuts } => {
            let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            cuts.windows(2).for_each(|part| client.send(&bytes[part[0]..part[1]]));
            let replies: Vec<String> = commands.iter().map(|_| client.reply()).collect();
            format!("[{}]", replies.join(", "))
        }
        Way::Transaction => {
            assert_eq!(client.call("MULTI"), "+OK");
            for command in commands {
                assert_eq!(client.call(command), "+QUEUED");
            }
            client.call("EXEC")
        }
    }
}

#[test]
fn pipelines_and_transactions_answer_as_single_commands_do() {
    let servers = [3, 3, 10, 10].map(start);
    let [plain, tried, unlimited_plain, unlimited_tried] = servers.each_ref().map(Server::connect);
    // Each round goes on with the graph of the one before it, so a failed one can't be made smaller.
    let config = Config { cases: 200, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let rounds = (vec(command(), 1..40), way());
    let clients = std::cell::RefCell::new([(plain, tried), (unlimited_plain, unlimited_tried)]);
    let result = runner.run(&rounds, |(mut commands, way)| {
        commands.retain(|command| HAS_CONTENT || !is_of_content(command));
        if commands.is_empty() {
            return Ok(());
        }
        let [limited, unlimited] = &mut *clients.borrow_mut();
        let (one_by_one, together) = match way {
            Way::Pipeline { .. } => limited,
            Way::Transaction => unlimited,
        };
        let expected: Vec<String> = commands.iter().map(|command| one_by_one.call(command)).collect();
        let expected = without_tokens(&format!("[{}]", expected.join(", ")));
        prop_assert_eq!(without_tokens(&send(together, &commands, &way)), expected, "{:?}", commands);
        Ok(())
    });
    result.unwrap();
}
