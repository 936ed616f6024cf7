//! Compares everything that a server shows with a model: both directions of edges, counts, checks, posts, feeds, threads in both
//! orders and as trees, texts and their history, locks, and what is answered to repetitions.

use serde_json::{Value, json};

use super::super::client::Ask;
use super::model::{Comment, Model, Post};
use super::operation::Status;
use super::reader::Reader;
use super::workload::USERS;
use crate::faults::workload::Pair;

type Compared = Result<(), String>;

/// Says what differs first.
pub fn compare(model: &Model, reader: &Reader<'_>) -> Compared {
    let comparison = Comparison { model, reader };
    comparison.checks()?;
    comparison.counts()?;
    for user in 1..=USERS {
        comparison.lists(user)?;
        comparison.posts_of(user)?;
        comparison.comments_of(user)?;
    }
    for (&id, post) in &model.posts {
        comparison.post(id, post)?;
        comparison.comment_thread(id, post)?;
    }
    model.comments.iter().try_for_each(|(id, comment)| comparison.comment(id, comment))
}

struct Comparison<'a> {
    model: &'a Model,
    reader: &'a Reader<'a>,
}

impl Comparison<'_> {
    /// Whether every user follows every other.
    fn checks(&self) -> Compared {
        let users = || 1..=USERS;
        let pairs: Vec<Pair> =
            users().flat_map(|follower| users().map(move |followee| Pair { follower, followee })).collect();
        let texts: Vec<_> =
            pairs.iter().map(|pair| [pair.follower.to_string(), pair.followee.to_string()]).collect();
        let body = Some(json!({ "pairs": texts }));
        let ask = Ask { method: "POST", body, ..Ask::get("/v1/check") };
        let Some(answer) = self.reader.ask(&ask)? else { return Ok(()) };
        let expected: Vec<bool> = pairs.iter().map(|pair| self.model.edges.contains_key(pair)).collect();
        same("checks of all pairs", &answer.json()["results"], &json!(expected))
    }

    fn counts(&self) -> Compared {
        let ids: Vec<String> = (1..=USERS).map(|user| format!("id={user}")).collect();
        let Some(found) = self.reader.get(&format!("/v1/counts?{}", ids.join("&")))? else { return Ok(()) };
        let count = |is_counted: &dyn Fn(&Pair) -> bool| {
            self.model.edges.keys().filter(|pair| is_counted(pair)).count()
        };
        let expected: Vec<Value> = (1..=USERS)
            .map(|user| {
                json!({
                    "id": user.to_string(),
                    "following": count(&|pair| pair.follower == user),
                    "followers": count(&|pair| pair.followee == user),
                })
            })
            .collect();
        same("counts", &found["items"], &json!(expected))
    }

    /// Both directions of a user's edges.
    fn lists(&self, user: u64) -> Compared {
        for name in ["following", "followers"] {
            let side = |pair: &Pair| match name {
                "following" => (pair.follower, pair.followee),
                _ => (pair.followee, pair.follower),
            };
            let path = format!("/v1/users/{user}/{name}");
            let Some(found) = self.reader.list(&path)? else { continue };
            let edges = self.model.edges.iter().map(|(pair, since)| (side(pair), since));
            let mut edges: Vec<(&str, u64)> = edges
                .filter(|((owner, _), _)| *owner == user)
                .map(|((_, other), since)| (since.as_str(), other))
                .collect();
            edges.sort_unstable_by(|one, other| other.cmp(one));
            let expected: Vec<Value> =
                edges.iter().map(|(since, id)| json!({ "id": id.to_string(), "since": since })).collect();
            same(&path, &json!(found), &json!(expected))?;
        }
        Ok(())
    }

    /// A user's own posts, and its feed.
    fn posts_of(&self, user: u64) -> Compared {
        let own = self.model.posts_by(|author| author == user);
        for (name, expected) in [("posts", own), ("feed", self.model.feed(user))] {
            let path = format!("/v1/users/{user}/{name}");
            let Some(found) = self.reader.list(&path)? else { continue };
            let expected: Vec<Value> =
                expected.iter().map(|id| shown_post(*id, &self.model.posts[id])).collect();
            same(&path, &json!(found), &json!(expected))?;
        }
        Ok(())
    }

    fn comments_of(&self, user: u64) -> Compared {
        let path = format!("/v1/users/{user}/comments");
        let Some(found) = self.reader.list(&path)? else { return Ok(()) };
        let is_own = |comment: &Comment| comment.new.author == user && comment.status == Status::Active;
        let own = self.model.comments.iter().rev().filter(|(_, comment)| is_own(comment));
        same_comments(&path, &found, own.map(|(id, comment)| (id.as_str(), comment)))
    }

    fn post(&self, id: u64, post: &Post) -> Compared {
        let path = format!("/v1/posts/{id}");
        let Some(found) = self.reader.ask(&Ask::get(&path))? else { return Ok(()) };
        let Some(again) = self.reader.ask(&post.new.ask())? else { return Ok(()) };
        if post.deleted {
            same(&path, &found.status.into(), &404.into())?;
            return same(&format!("{path} again"), &again.code().into(), &"post_deleted".into());
        }
        let active =
            self.model.comment_thread(id).filter(|(_, comment)| comment.status == Status::Active).count();
        let mut expected = shown_post(id, post);
        expected["comment_count"] = active.into();
        expected["comments_locked"] = post.locked.into();
        same(&path, &found.json(), &expected)?;
        same(&format!("{path} again"), &again.status.into(), &200.into())?;
        match &post.first {
            Some(first) => same(&format!("{path} again"), &again.body.into(), &first.as_str().into()),
            None => same(&format!("{path} again"), &again.json(), &shown_post(id, post)),
        }
    }

    /// A thread in both orders, and as a tree.
    fn comment_thread(&self, id: u64, post: &Post) -> Compared {
        let path = format!("/v1/posts/{id}/comments");
        if post.deleted {
            let Some(found) = self.reader.ask(&Ask::get(&path))? else { return Ok(()) };
            return same(&path, &found.status.into(), &404.into());
        }
        let oldest = format!("{path}?order=oldest");
        if let Some(found) = self.reader.list(&oldest)? {
            same_comments(&oldest, &found, self.model.comment_thread(id))?;
        }
        if self.model.comment_thread(id).next().is_none() {
            return Ok(());
        }
        let newest = format!("{path}?order=newest");
        if let Some(found) = self.reader.list(&newest)? {
            same_comments(&newest, &found, self.model.comment_thread(id).rev())?;
        }
        let tree = format!("{path}?view=tree&depth=40&replies=1000&limit=1000");
        match self.reader.get(&tree)? {
            Some(found) => self.branch(&tree, &found["items"], (id, None)),
            None => Ok(()),
        }
    }

    /// The direct replies to a comment, or those at the top, and what is below them.
    fn branch(&self, path: &str, found: &Value, (post, reply_to): (u64, Option<&str>)) -> Compared {
        let found: Vec<Value> = found.as_array().into_iter().flatten().cloned().collect();
        let replies: Vec<_> = self
            .model
            .comment_thread(post)
            .filter(|(_, comment)| comment.new.reply_to.as_deref() == reply_to)
            .collect();
        same_comments(path, &found, replies.iter().copied())?;
        let each = found.iter().zip(replies);
        let mut below = each.filter(|(_, (_, comment))| comment.reply_count > 0);
        below.try_for_each(|(node, (id, _))| self.branch(path, &node["replies"], (post, Some(id))))
    }

    /// A comment by its id, its history, and what is answered if it is sent again.
    fn comment(&self, id: &str, comment: &Comment) -> Compared {
        let path = format!("/v1/comments/{id}");
        // The others are in the pages of their threads.
        if self.model.posts[&comment.new.post].deleted
            && let Some(found) = self.reader.get(&path)?
        {
            same_comments(&path, &[found], std::iter::once((id, comment)))?;
        }
        self.history(&format!("{path}/history"), comment)?;
        let Some(again) = self.reader.ask(&comment.new.ask())? else { return Ok(()) };
        let repeated = format!("{path} again");
        same(&repeated, &again.status.into(), &200.into())?;
        if comment.status == Status::Purged {
            // The reason of a removal, and who removed it, are for moderators.
            let tombstone = Comment { reason: None, is_moderated: false, ..comment.clone() };
            return same_comments(&repeated, &[again.json()], std::iter::once((id, &tombstone)));
        }
        if let Some(first) = &comment.first {
            return same(&repeated, &again.body.into(), &first.as_str().into());
        }
        let (status, reason, versions) = (Status::Active, None, comment.versions[..1].to_vec());
        let first =
            Comment { status, reason, versions, reply_count: 0, is_moderated: false, ..comment.clone() };
        same_comments(&repeated, &[again.json()], std::iter::once((id, &first)))
    }

    fn history(&self, path: &str, comment: &Comment) -> Compared {
        if comment.status == Status::Purged {
            let Some(found) = self.reader.ask(&Ask::get(path))? else { return Ok(()) };
            return same(path, &found.status.into(), &410.into());
        }
        let Some(found) = self.reader.list(path)? else { return Ok(()) };
        let versions = (1..).zip(&comment.versions);
        let expected: Vec<Value> = versions
            .map(|(version, text)| json!({ "version": version, "at": text.at, "body": text.body }))
            .collect();
        same(path, &json!(found), &json!(expected))
    }
}

fn shown_post(id: u64, Post { new, .. }: &Post) -> Value {
    json!({
        "id": id.to_string(),
        "author": new.author.to_string(),
        "created_at": new.created_at,
        "payload": new.payload,
    })
}

/// Compares comments with those of the model. Fields that the model does not know are not looked at, but for those that would
/// show what must not be seen.
fn same_comments<'a>(
    path: &str,
    found: &[Value],
    expected: impl Iterator<Item = (&'a str, &'a Comment)>,
) -> Compared {
    const ABSENT: [&str; 5] = ["body", "reason", "removed_by", "edited_at", "reply_to"];
    let expected: Vec<Value> = expected.map(|(id, comment)| comment.shown(id)).collect();
    for (found, expected) in found.iter().zip(&expected) {
        let known = expected.as_object().into_iter().flat_map(serde_json::Map::keys).map(String::as_str);
        let differs = known.chain(ABSENT).find(|&field| found.get(field) != expected.get(field));
        if let Some(field) = differs {
            return Err(format!("{path}: {field} differs: expected {expected}, found {found}"));
        }
    }
    same(&format!("{path}: number of comments"), &found.len().into(), &expected.len().into())
}

fn same(path: &str, found: &Value, expected: &Value) -> Compared {
    if found == expected {
        return Ok(());
    }
    let excerpt = |value: &Value| value.to_string().chars().take(1_500).collect::<String>();
    Err(format!("{path}: expected {}, found {}", excerpt(expected), excerpt(found)))
}
