//! A profile that has the graph only.

use kinfolk_server::resp::table::Command;

use super::client::{Client, encode_words};
use super::server::{Server, Setup};
use crate::graph_only::GraphOnly;

/// The commands that need more than a graph, written down once more on purpose.
const BEYOND: [&str; 6] = ["suggest", "dismiss", "post", "delpost", "feed", "posts"];

fn call(client: &mut Client, name: &str, arguments: &[&str]) -> String {
    client.send(&encode_words(std::iter::once(name).chain(arguments.iter().copied())));
    client.reply()
}

#[test]
fn commands_beyond_the_graph_are_not_available() {
    let server = Server::on(Setup::default(), GraphOnly);
    for command in Command::<GraphOnly>::ALL {
        let reply = call(&mut server.connect(), command.name, command.example);
        let is_missing = reply.ends_with("API is not available in this profile yet");
        assert_eq!(is_missing, BEYOND.contains(&command.name), "{}: {reply}", command.name);
        assert_eq!(is_missing, command.capability.is_some(), "{}", command.name);
        assert!(!is_missing || reply.starts_with("-ERR the "), "{reply}");
    }
    let mut client = server.connect();
    assert_eq!(client.call_all(&["SADD following:1 2 3", "SCARD following:1"]), ["2", "2"]);
    // What can't be run is not queued.
    let replies = client.call_all(&["MULTI", "FOLLOW 1 4", "POST 1", "EXEC", "SCARD following:1"]);
    assert_eq!(replies[2], "-ERR the feed API is not available in this profile yet");
    assert!(replies[3].starts_with("-EXECABORT "), "{replies:?}");
    assert_eq!(replies[4], "2");
}
