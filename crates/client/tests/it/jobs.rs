//! Administration: import, export, verify, backup, compact and suggestions for everyone.

use std::io::Read;
use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt;
use kinfolk_client::api::{ExportContent, FileFormat};
use kinfolk_client::{ErrorCode, Import, SuggestRun};

use crate::server::Server;

#[test]
fn jobs_report_progress_and_return_their_outcome() {
    let server = Server::start();
    let client = server.blocking();
    let mut stages = Vec::new();
    let lines = "1,2\n2,3\n1,2\nbad\n";
    let options = Import { skip_invalid: true, ..Import::default() };
    let imported = client.import(&mut lines.as_bytes(), options, |step| stages.push(step.stage)).unwrap();
    assert_eq!((imported.added, imported.duplicates, imported.invalid), (2, 1, 1));
    assert!(!stages.is_empty());
    assert_eq!(client.token(), Some(imported.token));
    let refused = client.import(&mut lines.as_bytes(), Import::default(), |_| {}).unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::InvalidInput));

    let mut exported = String::new();
    client.export(ExportContent::Edges, FileFormat::Csv).unwrap().read_to_string(&mut exported).unwrap();
    assert_eq!(exported, "1,2\n2,3\n");
    let verified = client.verify(false, |_| {}).unwrap();
    assert_eq!((verified.edges, verified.differences, verified.repaired), (2, 0, false));
    assert_eq!(client.compact(|_| {}).unwrap().erased, 0);
    let run = SuggestRun { keep: Some(5), threads: Some(1), afresh: true, ..SuggestRun::default() };
    let computed = client.suggest(&run, |_| {}).unwrap();
    assert!(computed.complete && computed.suggested == 1, "{computed:?}");
    assert!(client.suggestions(1, 5).unwrap().computed_at.is_some());
    let mut backup = Vec::new();
    client.backup().unwrap().read_to_end(&mut backup).unwrap();
    assert!(!backup.is_empty());
}

#[test]
fn the_same_from_async_code() {
    let server = Server::start();
    server.run(async |client| {
        let stages = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&stages);
        let report = move |step: kinfolk_client::api::Progress| seen.lock().unwrap().push(step.stage);
        let file = std::io::Cursor::new("1,2\n2,3\n");
        assert_eq!(client.import(file, Import::default(), report).await.unwrap().added, 2);
        assert!(!stages.lock().unwrap().is_empty());
        let parts = client.export(ExportContent::Edges, FileFormat::Csv).await.unwrap();
        let parts: Vec<_> = parts.try_collect().await.unwrap();
        assert_eq!(parts.concat(), b"1,2\n2,3\n");
        assert_eq!(client.verify(true, |_| {}).await.unwrap().edges, 2);
        assert_eq!(client.compact(|_| {}).await.unwrap().erased, 0);
        assert!(client.suggest(SuggestRun::default(), |_| {}).await.unwrap().complete);
        let backup: Vec<_> = client.backup().await.unwrap().try_collect().await.unwrap();
        assert!(!backup.concat().is_empty());
    });
}
