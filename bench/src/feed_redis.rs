//! Feeds as they are commonly built on Redis: a sorted set for each inbox and for each author who is pulled, a string
//! for each post, and an application that merges. It does not look for deleted posts or authors who were unfollowed.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cast::Cast;
use crate::client::{Client, leading_number};
use crate::fan_out::Followers;
use crate::posting::Made;
use crate::redis::Redis;
use crate::server::cpu_seconds;

/// How many inboxes are asked for their memory.
const WEIGHED: usize = 1_000;

/// A Redis with the same feeds.
pub struct RedisFeeds {
    redis: Redis,
    client: Client,
    cast: Cast,
    entries: usize,
    pushes: HashMap<u64, Push>,
}

/// What is sent to put a post into an inbox, but for the post.
struct Push {
    add: Vec<u8>,
    trim: Vec<u8>,
}

/// What pushing took.
#[derive(Clone, Copy, Debug)]
pub struct Pushed {
    pub entries: u64,
    pub elapsed: Duration,
    pub cpu_seconds: f64,
}

impl RedisFeeds {
    /// Fills an empty Redis with what the store has.
    pub fn fill(redis: Redis, cast: Cast, followers: &Followers) -> Result<Self> {
        eprintln!("loading Redis");
        let entries = cast.settings().inbox_entries;
        let mut by_author: HashMap<u64, Vec<Made>> = HashMap::new();
        let posts = cast.posts();
        posts.iter().for_each(|post| by_author.entry(post.author).or_default().push(*post));
        let mut followed: HashMap<u64, Vec<u64>> = HashMap::new();
        for (&speaker, fans) in followers {
            fans.iter().for_each(|&fan| followed.entry(fan).or_default().push(speaker));
        }
        let (_, pulled) = cast.followed();
        followed.extend(
            cast.readers().map(|reader| (reader, cast.followed_by(reader).split_off(pulled as usize))),
        );

        let mut client = Client::resp(redis.address, None)?;
        for chunk in posts.chunks(1_000) {
            let texts: Vec<String> = chunk.iter().map(|post| set(*post)).collect();
            client.pipeline(&texts.concat(), chunk.len() as u64)?;
        }
        redis.fill(|out| {
            for author in cast.pulled() {
                add_all(out, &format!("posts:{author}"), by_author.get(&author).map_or(&[], Vec::as_slice))?;
            }
            for (user, authors) in &followed {
                let mut inbox: Vec<Made> =
                    authors.iter().filter_map(|author| by_author.get(author)).flatten().copied().collect();
                inbox.sort_unstable_by_key(|post| std::cmp::Reverse(post.id));
                inbox.truncate(entries);
                add_all(out, &format!("inbox:{user}"), &inbox)?;
            }
            Ok(())
        })?;
        let pushes = cast.fans().map(|fan| (fan, Push::into_inbox_of(fan, entries))).collect();
        Ok(Self { redis, client, cast, entries, pushes })
    }

    /// The newest ids of a reader's feed and how long it took to have the posts: one pipeline for the inbox and the
    /// authors who are pulled, a merge, and one command for the posts.
    pub fn page(&mut self, reader: u64, limit: usize) -> Result<(Vec<u64>, Duration)> {
        let (_, pulled) = self.cast.followed();
        let authors = self.cast.followed_by(reader);
        let started = Instant::now();
        let mut commands = format!("ZREVRANGE inbox:{reader} 0 {} WITHSCORES\r\n", limit - 1);
        for author in &authors[..pulled as usize] {
            commands.push_str(&format!("ZREVRANGE posts:{author} 0 {} WITHSCORES\r\n", limit - 1));
        }
        let replies = self.client.pipeline(&commands, pulled + 1)?;
        let mut newest = scored(replies).context("Redis answered without scores")?;
        newest.sort_unstable_by(|one, other| other.cmp(one));
        newest.truncate(limit);
        let keys: Vec<String> = newest.iter().map(|(_, id)| format!(" post:{id}")).collect();
        let posts = self.client.command(&format!("MGET{}", keys.concat()))?;
        if leading_number(posts) != Some(limit as u64) {
            bail!("Redis answered with {:?} posts, not {limit}", leading_number(posts));
        }
        let elapsed = started.elapsed();
        Ok((newest.into_iter().map(|(_, id)| id).collect(), elapsed))
    }

    /// Puts posts into the inboxes of followers, pipelined, in the order given, for a time.
    pub fn push(&self, posts: &[Made], followers: &Followers, time: Duration) -> Result<Pushed> {
        let mut entries = 0;
        let cpu = cpu_seconds(self.redis.process);
        let started = Instant::now();
        self.redis.fill(|out| {
            for post in posts {
                let member = part(&post.millis.to_string()) + &part(&post.id.to_string());
                for fan in followers.get(&post.author).into_iter().flatten() {
                    let push = self.pushes.get(fan).context("only fans follow speakers")?;
                    out.write_all(&push.add)?;
                    out.write_all(member.as_bytes())?;
                    out.write_all(&push.trim)?;
                    entries += 1;
                }
                if started.elapsed() > time {
                    break;
                }
            }
            Ok(())
        })?;
        let elapsed = started.elapsed();
        Ok(Pushed { entries, elapsed, cpu_seconds: cpu_seconds(self.redis.process) - cpu })
    }

    /// What an inbox takes, as Redis tells: the mean of those that are full.
    pub fn inbox_bytes(&mut self) -> Result<f64> {
        let (mut bytes, mut count) = (0, 0);
        for fan in self.cast.fans_with_full_inbox().into_iter().take(WEIGHED) {
            let held = leading_number(self.client.command(&format!("ZCARD inbox:{fan}"))?);
            if held != Some(self.entries as u64) {
                bail!("the inbox of user {fan} in Redis has {held:?} entries, not {}", self.entries);
            }
            let reply = self.client.command(&format!("MEMORY USAGE inbox:{fan} SAMPLES 0"))?;
            bytes += leading_number(reply).context("Redis told no memory")?;
            count += 1;
        }
        Ok(bytes as f64 / f64::from(count.max(1)))
    }
}

impl Push {
    fn into_inbox_of(fan: u64, entries: usize) -> Self {
        let inbox = part(&format!("inbox:{fan}"));
        let last = part(&format!("-{}", entries + 1));
        let trim = format!("*4\r\n{}{inbox}{}{last}", part("ZREMRANGEBYRANK"), part("0"));
        Self { add: format!("*4\r\n{}{inbox}", part("ZADD")).into_bytes(), trim: trim.into_bytes() }
    }
}

/// An argument of a command.
fn part(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn set(post: Made) -> String {
    let key = part(&format!("post:{}", post.id));
    format!("*3\r\n{}{key}{}", part("SET"), part(&post.payload()))
}

fn add_all(out: &mut dyn Write, key: &str, posts: &[Made]) -> Result<()> {
    if posts.is_empty() {
        return Ok(());
    }
    write!(out, "*{}\r\n{}{}", 2 + 2 * posts.len(), part("ZADD"), part(key))?;
    for post in posts {
        write!(out, "{}{}", part(&post.millis.to_string()), part(&post.id.to_string()))?;
    }
    Ok(())
}

/// The times and ids in replies to `ZREVRANGE … WITHSCORES`, which are numbers in text.
fn scored(replies: &[u8]) -> Option<Vec<(u64, u64)>> {
    let text = std::str::from_utf8(replies).ok()?;
    let mut values = text.lines().filter(|line| !line.starts_with(['*', '$']));
    let mut found = Vec::new();
    while let Some(id) = values.next() {
        found.push((values.next()?.parse().ok()?, id.parse().ok()?));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ids_are_read_from_replies() {
        let replies = b"*2\r\n$2\r\n17\r\n$1\r\n5\r\n*0\r\n*2\r\n$1\r\n8\r\n$2\r\n12\r\n";
        assert_eq!(scored(replies), Some(vec![(5, 17), (12, 8)]));
        assert_eq!(scored(b"*1\r\n$2\r\n17\r\n"), None);
    }

    #[test]
    fn commands_are_framed() {
        let push = Push::into_inbox_of(7, 200);
        assert_eq!(push.add, b"*4\r\n$4\r\nZADD\r\n$7\r\ninbox:7\r\n");
        assert!(push.trim.ends_with(b"$7\r\ninbox:7\r\n$1\r\n0\r\n$4\r\n-201\r\n"));
    }
}
