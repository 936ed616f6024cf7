//! A running server as a target: each piece of work is a call of its REST interface.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use kinfolk_core::bulk::{BackupReport, Progress, VerifyReport};
use kinfolk_core::feeds::{NewPost, PostPage};
use kinfolk_core::graph::{Counts, Edge, EdgeAction, EdgeCommand, ListEntry, ListPage, OverlapPage};
use kinfolk_core::suggestions::SuggestionRunReport;
use kinfolk_core::{ErrorCode, Id, IdKind, PageRequest, Timestamp};
use kinfolk_server::{FileFormat, payload};
use serde::Serialize;
use ureq::Body;
use ureq::http::{Method, Response};

use super::answers::{
    ChangeItem, CountsItem, Entry, Following, ImportAnswer, OverlapAnswer, Page, PostItem, SuggestAnswer,
    SuggestionsAnswer, VerifyAnswer,
};
use super::http::{Call, HttpClient, header, json, last_line};
use super::{
    ChangesDone, ImportWish, Imported, List, PostDone, PostList, ServerAddress, SuggestDone, SuggestWish,
    Suggested, Target, WriteDone,
};
use crate::answer::as_optional_text;
use crate::failure::{Refusal, UsageError};
use crate::input::{Place, Rules, Sink, Source, Stop, Text};
use crate::output::{Edges, FileWriter, write_new_file};
use crate::profile::embedded::{IMPORTED_FILE, inspect_backup};
use crate::progress::{READING, Reporter};

/// How many bytes or edges pass between two reports of progress.
const REPORT_EVERY: u64 = 1 << 18;

/// A server.
pub struct Server {
    pub(super) client: HttpClient,
}

impl Server {
    /// Gets ready to ask; whether it answers shows with the first call.
    pub fn connect(address: &ServerAddress) -> Result<Self> {
        address.require_consent()?;
        Ok(Self { client: HttpClient::new(address)? })
    }

    fn import_one(&self, source: &Source, wish: &ImportWish, reporter: &Reporter) -> Result<Imported> {
        let path = format!(
            "/v1/admin/import?format={}&skip_invalid={}&no_limit={}",
            format_name(source.format()),
            wish.skip_invalid,
            wish.no_limit
        );
        let mut input = Counted { inner: source.open()?, done: 0, total: source.length(), reporter };
        let body = Some(("application/octet-stream", &mut input as &mut dyn Read));
        // Parquet is copied by the server first, which has to know whether it fits.
        let body_length = source.length().filter(|_| source.format() == FileFormat::Parquet);
        let call = Call { body, body_length, is_bulk: true, ..Call::new(Method::POST, path) };
        let named = |error| name_the_file(error, source.name());
        let outcome: ImportAnswer =
            last_line(self.client.send(call).map_err(named)?, reporter).map_err(named)?;
        Ok(Imported {
            added: outcome.added,
            duplicates: outcome.duplicates,
            self_follows: outcome.self_follows,
            over_limit: outcome.over_limit,
            invalid: outcome.invalid,
            edges: outcome.added + outcome.duplicates + outcome.self_follows + outcome.over_limit,
            token: outcome.token,
        })
    }
}

impl Server {
    /// A write on behalf of a user.
    fn write_as(&self, actor: Id, method: Method, path: String) -> Result<WriteDone> {
        let call = Call { actor: Some(actor.to_string()), ..Call::new(method, path) };
        written(&self.client.send(call)?)
    }

    /// A page of an overlap; the path ends with a query that can be added to.
    fn overlap(&self, path: String) -> Result<OverlapPage> {
        let page: OverlapAnswer = self.client.get(path)?;
        let items = page.items.into_iter().map(|item| item.id.0).collect();
        Ok(OverlapPage { count: page.count, items, next: page.next })
    }
}

impl Target for Server {
    fn write(&self, command: EdgeCommand) -> Result<WriteDone> {
        let Edge { follower, followee } = command.edge;
        let method = match command.action {
            EdgeAction::Follow => Method::POST,
            EdgeAction::Unfollow => Method::DELETE,
        };
        self.write_as(follower, method, format!("/v1/users/{followee}/follow"))
    }

    fn since(&self, edge: Edge) -> Result<Option<Timestamp>> {
        let Edge { follower, followee } = edge;
        let answer: Following = self.client.get(format!("/v1/users/{follower}/following/{followee}"))?;
        match (answer.following, answer.since) {
            (true, None) => Err(anyhow!("the server did not say since when")),
            (_, since) => Ok(since.map(|since| since.0)),
        }
    }

    fn page(&self, list: List, of: Id, request: PageRequest<'_>) -> Result<ListPage> {
        let list = match list {
            List::Following => "following",
            List::Followers => "followers",
            List::Friends => "friends",
        };
        let page: Page<Entry> = self.client.get(format!("/v1/users/{of}/{list}?{}", page_query(request)))?;
        let entries = page.items.into_iter().map(|entry| ListEntry { since: entry.since.0, id: entry.id.0 });
        Ok(ListPage { items: entries.collect(), next: page.next })
    }

    fn counts(&self, of: &[Id]) -> Result<Vec<Counts>> {
        let page: Page<CountsItem> = self.client.get(format!("/v1/counts?{}", ids_query(of)))?;
        let counts =
            page.items.iter().map(|item| Counts { following: item.following, followers: item.followers });
        Ok(counts.collect())
    }

    fn common(&self, of: &[Id], request: PageRequest<'_>) -> Result<OverlapPage> {
        self.overlap(format!("/v1/common?{}&{}", ids_query(of), page_query(request)))
    }

    fn known_followers(&self, viewer: Id, of: Id, request: PageRequest<'_>) -> Result<OverlapPage> {
        self.overlap(format!("/v1/users/{of}/known-followers?viewer={viewer}&{}", page_query(request)))
    }

    fn suggestions(&self, of: Id, limit: usize) -> Result<Suggested> {
        let answer: SuggestionsAnswer =
            self.client.get(format!("/v1/users/{of}/suggestions?limit={limit}"))?;
        Ok(answer.into())
    }

    fn dismiss(&self, of: Id, target: Id) -> Result<WriteDone> {
        self.write_as(of, Method::DELETE, format!("/v1/users/{of}/suggestions/{target}"))
    }

    fn register_post(&self, post: NewPost) -> Result<PostDone> {
        let (actor, idempotency_key) = (Some(post.author.to_string()), post.idempotency_key.clone());
        let text = serde_json::to_vec(&NewPostBody::from(post))?;
        let body = Some(("application/json", &mut text.as_slice() as &mut dyn Read));
        let call = Call::new(Method::POST, "/v1/posts".to_owned());
        let answer = self.client.send(Call { actor, idempotency_key, body, ..call })?;
        let WriteDone { changed, token } = written(&answer)?;
        Ok(PostDone { token, post: json::<PostItem>(answer)?.into(), is_new: changed })
    }

    fn delete_post(&self, author: Id, id: Id) -> Result<WriteDone> {
        self.write_as(author, Method::DELETE, format!("/v1/posts/{id}"))
    }

    fn posts(&self, list: PostList, of: Id, request: PageRequest<'_>) -> Result<PostPage> {
        let list = match list {
            PostList::Feed => "feed",
            PostList::Posts => "posts",
        };
        let page: Page<PostItem> =
            self.client.get(format!("/v1/users/{of}/{list}?{}", page_query(request)))?;
        Ok(page.into())
    }

    fn changes(&self, after: Option<&str>, limit: usize) -> Result<ChangesDone> {
        let after = after.map(|token| format!("&after={}", escaped(token))).unwrap_or_default();
        let page: Page<ChangeItem> = self.client.get(format!("/v1/changes?limit={limit}{after}"))?;
        let items = page.items.into_iter().map(ChangeItem::into_change).collect::<Result<_>>()?;
        Ok(ChangesDone { items, next: page.next.ok_or_else(|| anyhow!("the server sent no token"))? })
    }

    fn import(
        self: Box<Self>,
        sources: &[Source],
        wish: &ImportWish,
        reporter: &Reporter,
    ) -> Result<Imported> {
        if wish.limit.is_some() || wish.memory.is_some() {
            let message =
                "--limit and --memory are for a folder; a server has settings of its own".to_owned();
            return Err(UsageError(message).into());
        }
        let mut all = Imported::default();
        for source in sources {
            let one = self.import_one(source, wish, reporter)?;
            all = Imported {
                added: all.added + one.added,
                duplicates: all.duplicates + one.duplicates,
                self_follows: all.self_follows + one.self_follows,
                over_limit: all.over_limit + one.over_limit,
                invalid: all.invalid + one.invalid,
                edges: all.edges + one.edges,
                token: one.token,
            };
        }
        reporter.finish();
        Ok(all)
    }

    /// Asks for plain lines and writes them in the format of the file, so that the edges can be counted and a file
    /// that was cut short on the way is never taken for a whole one.
    fn export(&self, file: &Path, reporter: &Reporter) -> Result<u64> {
        let call = Call::new(Method::GET, "/v1/admin/export?format=csv".to_owned());
        let answer = self.client.send(Call { is_bulk: true, ..call })?;
        let mut lines = answer.into_body().into_with_config().limit(u64::MAX).reader();
        let mut begin = vec![0; 4_096];
        let length = read_fully(&mut lines, &mut begin).context("the server's answer could not be read")?;
        begin.truncate(length);
        let ids = id_kind(&begin);
        let writer = FileWriter::create(file, Edges { ids, since: true })?;
        let mut export = Export { writer, edges: 0, failure: None, reporter };
        let text = Text { name: "the server's answer", format: FileFormat::Csv };
        let rules = Rules { ids, since_max: Timestamp::MAX };
        let read = text.read(begin.as_slice().chain(lines), rules, &mut export);
        match (read, export.failure) {
            (_, Some(error)) => Err(error),
            (Err(Stop::Malformed(detail)), None) => Err(anyhow!(detail)),
            (Err(Stop::Unreadable(error)), None) => Err(error),
            (Err(Stop::Refused(error)), None) => Err(error.into()),
            (Ok(()), None) => export.writer.finish().map(|()| export.edges),
        }
    }

    fn verify(&self, repair: bool, reporter: &Reporter) -> Result<VerifyReport> {
        let call = Call::new(Method::POST, format!("/v1/admin/verify?repair={repair}"));
        let answer: VerifyAnswer = last_line(self.client.send(Call { is_bulk: true, ..call })?, reporter)?;
        Ok(VerifyReport {
            edges: answer.edges,
            users: answer.users,
            difference_count: answer.differences,
            differences: answer.examples,
            repaired: answer.repaired,
        })
    }

    fn suggest(&self, wish: &SuggestWish, reporter: &Reporter) -> Result<SuggestDone> {
        let call = Call::new(Method::POST, format!("/v1/admin/suggest?{}", wish.query()));
        let answer: SuggestAnswer = last_line(self.client.send(Call { is_bulk: true, ..call })?, reporter)?;
        let SuggestAnswer { users, suggested, resumed, complete } = answer;
        let report = SuggestionRunReport { users, suggested, resumed, complete };
        Ok(SuggestDone { report, stopped_by: None })
    }

    fn backup(&self, file: &Path, reporter: &Reporter) -> Result<BackupReport> {
        write_new_file(file, |out| {
            let call = Call::new(Method::GET, "/v1/admin/backup".to_owned());
            let answer = self.client.send(Call { is_bulk: true, ..call })?;
            let total = answer.body().content_length();
            let body = answer.into_body().into_with_config().limit(u64::MAX).reader();
            let mut body = Counted { inner: body, done: 0, total, reporter };
            let not_whole = "the backup did not arrive whole and was not kept; run it again";
            io::copy(&mut body, out).and_then(|_| out.flush()).context(not_whole)?;
            // It is read before it is called a backup: only one with its end is whole.
            let content = out.content().ok_or_else(|| anyhow!("it is not a file"))?;
            inspect_backup(content).context(not_whole)
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A post on its way to a server.
#[derive(Serialize)]
struct NewPostBody {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "payload::as_json")]
    payload: Option<Arc<str>>,
}

impl From<NewPost> for NewPostBody {
    /// Without the author and the key, which have headers.
    fn from(NewPost { id, created_at, payload, .. }: NewPost) -> Self {
        Self { id, created_at, payload }
    }
}

/// What the headers of the answer to a write say.
pub(super) fn written(answer: &Response<Body>) -> Result<WriteDone> {
    let token = header(answer, "Kinfolk-Token").ok_or_else(|| anyhow!("the server sent no token"))?;
    let changed = header(answer, "Kinfolk-Changed").as_deref() != Some("false");
    Ok(WriteDone { changed, token })
}

/// The server does not know what the file is called here.
fn name_the_file(error: anyhow::Error, name: &str) -> anyhow::Error {
    match error.downcast::<Refusal>() {
        Ok(Refusal { code, message }) => {
            let place = message.strip_prefix(IMPORTED_FILE).filter(|_| code == Some(ErrorCode::InvalidInput));
            let message = place.map_or_else(|| message.clone(), |place| format!("{name}{place}"));
            Refusal { code, message }.into()
        }
        Err(error) => error,
    }
}

/// How the server calls a format.
fn format_name(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Csv => "csv",
        FileFormat::CsvGzip => "csv.gz",
        FileFormat::CsvZstd => "csv.zst",
        FileFormat::Parquet => "parquet",
    }
}

/// The kind of ids in an export, by its first edge.
fn id_kind(begin: &[u8]) -> IdKind {
    let first_edge = begin.split(|&byte| byte == b'\n').nth(1).unwrap_or_default();
    let first_id = first_edge.split(|&byte| byte == b',').next().unwrap_or_default();
    if first_id.contains(&b'-') { IdKind::Uuid } else { IdKind::Integer }
}

fn read_fully(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// The part of a query that says which page.
pub(super) fn page_query(request: PageRequest<'_>) -> String {
    let cursor = request.cursor.map(|cursor| format!("&cursor={}", escaped(cursor)));
    format!("limit={}{}", request.limit, cursor.unwrap_or_default())
}

/// The part of a query that says which users.
fn ids_query(of: &[Id]) -> String {
    of.iter().map(|id| format!("id={id}")).collect::<Vec<_>>().join("&")
}

/// Text for a query: anything but letters, digits and a few signs is escaped.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Edges on their way from a server into a file.
struct Export<'a> {
    writer: FileWriter<Edges>,
    edges: u64,
    /// Why the file could not be written.
    failure: Option<anyhow::Error>,
    reporter: &'a Reporter,
}

impl Sink for Export<'_> {
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop> {
        self.edges += 1;
        if self.edges.is_multiple_of(REPORT_EVERY) {
            self.reporter.report(Progress { stage: "exporting", done: self.edges, total: None });
        }
        self.writer.write(&(edge, since.unwrap_or(Timestamp::MIN))).map_err(|error| {
            self.failure = Some(error);
            Stop::Malformed("the file could not be written".to_owned())
        })
    }

    fn malformed(&mut self, place: Place<'_>, reason: &str) -> Result<(), Stop> {
        Err(Stop::malformed(place, reason))
    }
}

/// Tells how much of a stream has passed.
struct Counted<'a, R> {
    inner: R,
    done: u64,
    total: Option<u64>,
    reporter: &'a Reporter,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.done += count as u64;
        self.reporter.report(Progress { stage: READING, done: self.done, total: self.total });
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_edge_tells_the_kind_of_ids() {
        for (begin, kind) in [
            ("", IdKind::Integer),
            ("follower,followee,since\n", IdKind::Integer),
            ("follower,followee,since\n1,2,2026-01-01T00:00:00.000Z\n", IdKind::Integer),
            ("follower,followee,since\n0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,", IdKind::Uuid),
        ] {
            assert_eq!(id_kind(begin.as_bytes()), kind, "{begin}");
        }
    }

    #[test]
    fn queries_are_escaped() {
        assert_eq!(escaped("aZ0-_.~ &=é"), "aZ0-_.~%20%26%3D%C3%A9");
    }

    #[test]
    fn the_file_is_named_where_the_server_could_not() {
        let error = |code, message: &str| Refusal { code, message: message.to_owned() }.into();
        let named = |error| name_the_file(error, "a.csv").to_string();
        let place = format!("{IMPORTED_FILE}:3: no");
        assert_eq!(named(error(Some(ErrorCode::InvalidInput), &place)), "a.csv:3: no");
        assert_eq!(named(error(Some(ErrorCode::Forbidden), "no")), "no");
    }
}
