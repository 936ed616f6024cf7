//! The users of the demo: the celebrity, a fan of it, the fan's followees who write, and others who comment.

use anyhow::Result;
use kinfolk_core::{Frontier, Id, PageRequest};

use crate::client::LocalGraph;
use crate::commands::KIND;

/// The fan is the one with the most followees among this many newest followers of the celebrity.
const NEWEST_FOLLOWERS: usize = 100;
/// How many of the fan's followees are looked at.
const FOLLOWEES: usize = 1_000;
/// How many of them write posts.
pub(super) const AUTHORS: usize = 20;
/// How many of them lose the fan.
const UNFOLLOWED: usize = 2;
/// How many other followers of the celebrity comment.
const CROWD: usize = 20;

/// The users that take part. A small graph has fewer than a large one.
pub(super) struct Cast {
    /// The user with the most followers.
    pub(super) celebrity: Id,
    /// One of its newest followers, with many followees.
    pub(super) fan: Id,
    /// The newest followees of the fan, without the celebrity; the fan itself if there are none.
    authors: Vec<Id>,
    /// The oldest followees of the fan, if it has more than authors.
    pub(super) unfollowed: Vec<Id>,
    /// Other newest followers of the celebrity.
    pub(super) crowd: Vec<Id>,
}

impl Cast {
    /// Chooses the users.
    pub(super) fn choose(open: &LocalGraph, celebrity: Id) -> Result<Self> {
        let graph = &open.graph;
        let request = PageRequest { limit: NEWEST_FOLLOWERS, cursor: None };
        let newest = open.run(graph.followers(KIND, celebrity, request, Frontier::EMPTY))?.items;
        let newest: Vec<Id> = newest.iter().map(|entry| entry.id).collect();
        let counts = open.run(graph.counts(KIND, &newest, Frontier::EMPTY))?;
        let busiest = newest.iter().zip(counts).max_by_key(|(_, counts)| counts.following);
        let fan = busiest.map_or(celebrity, |(&id, _)| id);

        let request = PageRequest { limit: FOLLOWEES, cursor: None };
        let followees = open.run(graph.following(KIND, fan, request, Frontier::EMPTY))?.items;
        let others = followees.iter().map(|entry| entry.id).filter(|&id| id != celebrity);
        let mut authors: Vec<Id> = others.collect();
        let silent = authors.split_off(authors.len().min(AUTHORS));
        if authors.is_empty() {
            authors.push(fan);
        }
        Ok(Self {
            celebrity,
            fan,
            authors,
            unfollowed: silent.into_iter().rev().take(UNFOLLOWED).collect(),
            crowd: newest.into_iter().filter(|&id| id != fan).take(CROWD).collect(),
        })
    }

    /// The followees of the fan who write.
    pub(super) fn authors(&self) -> impl Iterator<Item = Id> {
        self.authors.iter().copied()
    }

    /// An author by number. Where there are fewer, one has several numbers.
    pub(super) fn author(&self, number: usize) -> Id {
        self.authors[number % self.authors.len()]
    }

    /// Somebody who comments, by number: authors first, then the crowd.
    pub(super) fn commenter(&self, number: usize) -> Id {
        let number = number % (self.authors.len() + self.crowd.len());
        self.authors.get(number).copied().unwrap_or_else(|| self.crowd[number - self.authors.len()])
    }
}
