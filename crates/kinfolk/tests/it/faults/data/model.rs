//! What a store must hold after some operations: edges, posts, comments with all their texts, locks. It knows nothing of
//! requests and answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::history::Entry;
use super::operation::{MODERATOR, NewComment, NewPost, Operation, Status};
use crate::faults::workload::Pair;

/// Everything, by what it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// With the time since when.
    pub edges: BTreeMap<Pair, String>,
    pub posts: BTreeMap<u64, Post>,
    /// By id, which is the order in which they were written.
    pub comments: BTreeMap<String, Comment>,
}

#[derive(Clone, Debug)]
pub struct Post {
    pub new: NewPost,
    /// What answered it first, if it was acknowledged.
    pub first: Option<String>,
    pub deleted: bool,
    pub locked: bool,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub new: NewComment,
    /// What answered it first, if it was acknowledged.
    pub first: Option<String>,
    pub depth: u64,
    /// The oldest first. Of a purged comment only the times count.
    pub versions: Vec<Version>,
    pub status: Status,
    pub reason: Option<String>,
    /// Whether a moderator removed or purged it.
    pub is_moderated: bool,
    pub reply_count: u64,
}

#[derive(Clone, Debug)]
pub struct Version {
    pub at: String,
    pub body: String,
}

impl Model {
    /// Whether an operation would change anything.
    pub fn is_changed_by(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Follow(pair) => !self.edges.contains_key(pair),
            Operation::Unfollow(pair) => self.edges.contains_key(pair),
            Operation::DeletePost { post, .. } => !self.posts[post].deleted,
            Operation::Withdraw { comment, status, .. } => self.comments[comment].status < *status,
            Operation::Lock { post, locked } => self.posts[post].locked != *locked,
            Operation::Import { .. }
            | Operation::Post(_)
            | Operation::Comment(_)
            | Operation::Edit { .. } => true,
        }
    }

    /// Brings it up to date with what the log has next.
    pub fn apply(&mut self, Entry { operation, at, id, first, .. }: &Entry) {
        match operation {
            Operation::Follow(pair) => {
                self.edges.insert(*pair, at.clone());
            }
            Operation::Unfollow(pair) => {
                self.edges.remove(pair);
            }
            Operation::Import { pairs, since } => {
                for pair in pairs {
                    self.edges.entry(*pair).or_insert_with(|| since.clone());
                }
            }
            Operation::Post(new) => {
                let id = id.parse().expect("a post has a number");
                let (new, first) = (new.clone(), first.clone());
                self.posts.insert(id, Post { new, first, deleted: false, locked: false });
            }
            Operation::DeletePost { post, .. } => self.post(*post).deleted = true,
            Operation::Lock { post, locked } => self.post(*post).locked = *locked,
            Operation::Comment(new) => self.add_comment(new, at, id, first.clone()),
            Operation::Edit { comment, body, .. } => {
                self.comment(comment).versions.push(Version { at: at.clone(), body: body.clone() });
            }
            Operation::Withdraw { comment, status, reason, .. } => {
                let comment = self.comment(comment);
                comment.status = *status;
                comment.is_moderated |= matches!(status, Status::Removed | Status::Purged);
                if reason.is_some() {
                    comment.reason.clone_from(reason);
                }
            }
        }
    }

    fn add_comment(&mut self, new: &NewComment, at: &str, id: &str, first: Option<String>) {
        let depth = new.reply_to.as_deref().map_or(0, |answered| {
            let answered = self.comment(answered);
            answered.reply_count += 1;
            answered.depth + 1
        });
        let versions = vec![Version { at: at.to_owned(), body: new.body.clone() }];
        let (new, status) = (new.clone(), Status::Active);
        let comment = Comment {
            new,
            first,
            depth,
            versions,
            status,
            reason: None,
            is_moderated: false,
            reply_count: 0,
        };
        self.comments.insert(id.to_owned(), comment);
    }

    fn post(&mut self, id: u64) -> &mut Post {
        self.posts.get_mut(&id).expect("an operation is about a known post")
    }

    fn comment(&mut self, id: &str) -> &mut Comment {
        self.comments.get_mut(id).expect("an operation is about a known comment")
    }

    /// The posts that are not deleted of some authors, newest first.
    pub fn posts_by(&self, is_author: impl Fn(u64) -> bool) -> Vec<u64> {
        let posts = self.posts.iter().filter(|(_, post)| !post.deleted && is_author(post.new.author));
        let mut keys: Vec<(&str, u64)> = posts.map(|(id, post)| (&*post.new.created_at, *id)).collect();
        keys.sort_unstable_by(|one, other| other.cmp(one));
        keys.into_iter().map(|(_, id)| id).collect()
    }

    /// The posts of all followees of a user, newest first.
    pub fn feed(&self, of: u64) -> Vec<u64> {
        self.posts_by(|author| self.edges.contains_key(&Pair { follower: of, followee: author }))
    }

    /// The comments on a post, oldest first.
    pub fn comment_thread(&self, post: u64) -> impl DoubleEndedIterator<Item = (&str, &Comment)> {
        let comments = self.comments.iter().map(|(id, comment)| (id.as_str(), comment));
        comments.filter(move |(_, comment)| comment.new.post == post)
    }

    /// The text that the log tells with the operation: only while it is what an active comment says.
    pub fn told_text<'a>(&self, Entry { operation, id, .. }: &'a Entry) -> Option<&'a str> {
        let comment = self.comments.get(id)?;
        let version = match operation {
            Operation::Comment(_) => 1,
            Operation::Edit { version, .. } => version + 1,
            _ => return None,
        };
        let is_current = comment.status == Status::Active && comment.versions.len() == version;
        operation.text().filter(|_| is_current)
    }

    /// The payload that the log shows with the operation: until its post is deleted.
    pub fn logged_payload<'a>(&self, Entry { operation, id, .. }: &'a Entry) -> Option<&'a str> {
        let Operation::Post(new) = operation else { return None };
        let is_deleted =
            id.parse().ok().and_then(|id: u64| self.posts.get(&id)).is_some_and(|post| post.deleted);
        (!is_deleted).then_some(new.payload.as_str())
    }

    /// All texts of comments that are purged.
    pub fn purged_texts(&self) -> impl Iterator<Item = &str> {
        let purged = self.comments.values().filter(|comment| comment.status == Status::Purged);
        purged.flat_map(|comment| &comment.versions).map(|version| version.body.as_str())
    }
}

impl Comment {
    /// How it is shown to a moderator.
    pub fn shown(&self, id: &str) -> Value {
        let (first, last) = (&self.versions[0], &self.versions[self.versions.len() - 1]);
        let mut shown = json!({
            "id": id,
            "post": self.new.post.to_string(),
            "author": self.new.author.to_string(),
            "version": self.versions.len(),
            "created_at": first.at,
            "status": self.status.name(),
            "depth": self.depth,
            "reply_count": self.reply_count,
        });
        if self.status != Status::Purged {
            shown["body"] = last.body.as_str().into();
        }
        if self.versions.len() > 1 {
            shown["edited_at"] = last.at.as_str().into();
        }
        if let Some(reply_to) = &self.new.reply_to {
            shown["reply_to"] = reply_to.as_str().into();
        }
        if let Some(reason) = &self.reason {
            shown["reason"] = reason.as_str().into();
        }
        if self.is_moderated {
            shown["removed_by"] = format!("user:{MODERATOR}").into();
        }
        shown
    }
}
