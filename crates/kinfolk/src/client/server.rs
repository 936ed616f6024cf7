//! A running server: each operation is a call of its REST interface.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use kinfolk_core::feeds::{NewPost, PostPage};
use kinfolk_core::graph::{Counts, Edge, EdgeAction, ListEntry, ListPage, OverlapPage};
use kinfolk_core::suggestions::{Suggestion, SuggestionPage};
use kinfolk_core::{Id, PageRequest, Timestamp};
use kinfolk_server::payload;
use serde::Serialize;
use ureq::Body;
use ureq::http::{Method, Response};

use super::answers::{
    ChangeItem, CountsItem, Entry, Following, OverlapAnswer, Page, PostItem, SuggestionsAnswer,
};
use super::http::{Call, HttpClient, header, json};
use super::{ChangePage, PostWritten, ServerAddress, Written};
use crate::print::as_optional_text;

/// A server.
pub(crate) struct Server {
    pub(crate) http: HttpClient,
}

impl Server {
    /// Gets ready to ask; whether it answers shows with the first call.
    pub(crate) fn connect(address: &ServerAddress) -> Result<Self> {
        address.require_consent()?;
        Ok(Self { http: HttpClient::new(address)? })
    }
}

impl Server {
    /// A write on behalf of a user.
    fn write_as(&self, actor: Id, method: Method, path: String) -> Result<Written> {
        let call = Call { actor: Some(actor.to_string()), ..Call::new(method, path) };
        written(&self.http.send(call)?)
    }

    /// A page of an overlap; the path ends with a query that can be added to.
    fn overlap(&self, path: String) -> Result<OverlapPage> {
        let page: OverlapAnswer = self.http.get(path)?;
        let items = page.items.into_iter().map(|item| item.id.0).collect();
        Ok(OverlapPage { count: page.count, items, next: page.next })
    }
}

impl Server {
    pub(crate) fn write_edge(&self, action: EdgeAction, edge: Edge) -> Result<Written> {
        let Edge { follower, followee } = edge;
        let method = match action {
            EdgeAction::Follow => Method::POST,
            EdgeAction::Unfollow => Method::DELETE,
        };
        self.write_as(follower, method, format!("/v1/users/{followee}/follow"))
    }

    pub(crate) fn since(&self, edge: Edge) -> Result<Option<Timestamp>> {
        let Edge { follower, followee } = edge;
        let answer: Following = self.http.get(format!("/v1/users/{follower}/following/{followee}"))?;
        match (answer.following, answer.since) {
            (true, None) => Err(anyhow!("the server did not say since when")),
            (_, since) => Ok(since.map(|since| since.0)),
        }
    }

    pub(crate) fn list(&self, list: &str, of: Id, request: PageRequest<'_>) -> Result<ListPage> {
        let page: Page<Entry> = self.http.get(format!("/v1/users/{of}/{list}?{}", page_query(request)))?;
        let entries = page.items.into_iter().map(|entry| ListEntry { since: entry.since.0, id: entry.id.0 });
        Ok(ListPage { items: entries.collect(), next: page.next })
    }

    pub(crate) fn counts(&self, of: &[Id]) -> Result<Vec<Counts>> {
        let page: Page<CountsItem> = self.http.get(format!("/v1/counts?{}", ids_query(of)))?;
        let counts =
            page.items.iter().map(|item| Counts { following: item.following, followers: item.followers });
        Ok(counts.collect())
    }

    pub(crate) fn common(&self, of: &[Id], request: PageRequest<'_>) -> Result<OverlapPage> {
        self.overlap(format!("/v1/common?{}&{}", ids_query(of), page_query(request)))
    }

    pub(crate) fn known_followers(
        &self,
        viewer: Id,
        of: Id,
        request: PageRequest<'_>,
    ) -> Result<OverlapPage> {
        self.overlap(format!("/v1/users/{of}/known-followers?viewer={viewer}&{}", page_query(request)))
    }

    pub(crate) fn suggestions(&self, of: Id, limit: usize) -> Result<Suggestions> {
        let answer: SuggestionsAnswer = self.http.get(format!("/v1/users/{of}/suggestions?limit={limit}"))?;
        Ok(answer.into())
    }

    pub(crate) fn dismiss(&self, of: Id, target: Id) -> Result<Written> {
        self.write_as(of, Method::DELETE, format!("/v1/users/{of}/suggestions/{target}"))
    }

    pub(crate) fn register_post(&self, post: NewPost) -> Result<PostWritten> {
        let (actor, idempotency_key) = (Some(post.author.to_string()), post.idempotency_key.clone());
        let text = serde_json::to_vec(&NewPostBody::from(post))?;
        let body = Some(("application/json", &mut text.as_slice() as &mut dyn Read));
        let call = Call::new(Method::POST, "/v1/posts".to_owned());
        let answer = self.http.send(Call { actor, idempotency_key, body, ..call })?;
        let written = written(&answer)?;
        Ok(PostWritten { written, post: json::<PostItem>(answer)?.into() })
    }

    pub(crate) fn delete_post(&self, author: Id, id: Id) -> Result<Written> {
        self.write_as(author, Method::DELETE, format!("/v1/posts/{id}"))
    }

    pub(crate) fn posts(&self, list: &str, of: Id, request: PageRequest<'_>) -> Result<PostPage> {
        let page: Page<PostItem> = self.http.get(format!("/v1/users/{of}/{list}?{}", page_query(request)))?;
        Ok(page.into())
    }

    pub(crate) fn changes(&self, after: Option<&str>, limit: usize) -> Result<ChangePage> {
        let after = after.map(|token| format!("&after={}", escaped(token))).unwrap_or_default();
        let page: Page<ChangeItem> = self.http.get(format!("/v1/changes?limit={limit}{after}"))?;
        let items = page.items.into_iter().map(ChangeItem::into_change).collect::<Result<_>>()?;
        Ok(ChangePage { items, next: page.next.ok_or_else(|| anyhow!("the server sent no token"))? })
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
pub(super) fn written(answer: &Response<Body>) -> Result<Written> {
    let token = header(answer, "Kinfolk-Token").ok_or_else(|| anyhow!("the server sent no token"))?;
    let changed = header(answer, "Kinfolk-Changed").as_deref() != Some("false");
    Ok(Written { changed, token })
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

/// Whom a user may know.
#[derive(Clone, Debug)]
pub(crate) struct Suggestions {
    /// The best first.
    pub(crate) items: Vec<SuggestedUser>,
    /// When they were computed, if they were stored.
    pub(crate) computed_at: Option<Timestamp>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct SuggestedUser {
    /// Who.
    pub(crate) id: Id,
    /// How many are in between.
    pub(crate) mutual_count: u32,
    /// The Adamic-Adar score.
    pub(crate) score: f64,
    /// Their share of all neighbours.
    pub(crate) jaccard: f64,
    /// Some of those in between.
    pub(crate) via: Vec<Id>,
}

impl From<SuggestionPage> for Suggestions {
    fn from(SuggestionPage { items, computed_at }: SuggestionPage) -> Self {
        Self { items: items.into_iter().map(SuggestedUser::from).collect(), computed_at }
    }
}

impl From<Suggestion> for SuggestedUser {
    fn from(Suggestion { id, mutual_count, score, jaccard, via }: Suggestion) -> Self {
        Self { id, mutual_count, score: score.value(), jaccard, via }
    }
}
