//! What is counted.

use super::server::Server;

#[test]
fn commands_failures_and_connections() {
    let server = Server::start();
    let mut client = server.connect();
    let commands = [
        "SISMEMBER following:1 2",
        "FOLLOWS 1 2",
        "SADD following:1 2",
        "FOLLOW 1 1",
        "POST 1 ID 5",
        "POST 2 ID 5",
        "DELPOST 1 5",
        "FEED 2",
        "POSTS 1",
        "SISMEMBER x 2",
        "NONSENSE",
    ];
    client.call_all(&commands);
    // What a batch did is counted before its replies are sent, but the next batch shows it for certain.
    client.call("PING");
    let text = server.service.metrics.render(&[], &[]);
    let value = |name: &str, labels: &[&str]| -> f64 {
        let fits = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
        text.lines().filter(fits).map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    let counted = |operation| value("kinfolk_request_duration_seconds_count", &["\"resp\"", operation]);
    assert_eq!(
        (counted("\"check\""), counted("\"follow\""), counted("\"other\"")),
        (3.0, 2.0, 2.0),
        "{text}"
    );
    let of_feeds = ["\"post\"", "\"delete_post\"", "\"feed\"", "\"posts\""].map(counted);
    assert_eq!(of_feeds, [2.0, 1.0, 1.0, 1.0], "{text}");
    let failed = |code| value("kinfolk_request_failures_total", &["\"resp\"", code]);
    assert_eq!(
        [
            failed("\"self_follow\""),
            failed("\"wrong_key\""),
            failed("\"post_conflict\""),
            failed("\"invalid_request\"")
        ],
        [1.0; 4]
    );
}
