//! `verify` and `verify --repair` on stores whose rows are wrong: what is found, that it is repaired, and that every answer
//! is then what it was.

mod files;

use std::fs;
use std::path::Path;

use serde_json::Value;

use self::files::{Follow, Tree, change_checksummed, change_inbox, list_key, pair_key, since, tagged};
use crate::support::{Sandbox, copy_folder};

/// Users 1 to so many follow those after them, in a ring.
const USERS: u64 = 60;
const FOLLOWED: u64 = 40;
/// Follows and posts nothing but one post, which is pushed to three.
const QUIET: u64 = 100;

/// Posts: of users with many followers, which are pulled, and one that is pushed.
const PULLED: u64 = 1_000;
const PULLED_TOO: u64 = 1_001;
const PUSHED: u64 = 1_002;

fn followees(user: u64) -> impl Iterator<Item = u64> {
    (1..=FOLLOWED).map(move |step| (user - 1 + step) % USERS + 1)
}

/// A store with edges, posts, comments, idempotency keys and an inbox, all of it in row files.
struct Specimen {
    sandbox: Sandbox,
    /// The index snapshot of when half of the edges were there.
    half_index: Vec<u8>,
    /// The two comments: one, and a reply to it.
    comments: [u128; 2],
}

impl Specimen {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("kinfolk.toml", "[feed]\nfan_out_threshold = 10\n");
        let apply = |steps: &mut dyn Iterator<Item = (u64, u64)>| {
            let lines: String = steps.map(|(a, b)| format!("follow {a} {b}\n")).collect();
            assert_eq!(sandbox.run_with_input("apply", lines).status, 0);
        };
        let half = |from: u64| {
            let edges = move |user| followees(user).map(move |followee| (user, followee));
            (1..=USERS).flat_map(move |user| edges(user).skip(from as usize).take(FOLLOWED as usize / 2))
        };
        apply(&mut half(0));
        let half_index = fs::read(sandbox.path("kinfolk-data/index.snapshot")).unwrap();
        apply(&mut half(FOLLOWED / 2).chain((1..=3).map(|user| (user, QUIET))));
        for line in [
            format!("post 5 --id {PULLED} --at 2026-01-01T00:00:00Z --key five"),
            format!("post 6 --id {PULLED_TOO} --at 2026-01-02T00:00:00Z --key six"),
            format!("post {QUIET} --id {PUSHED} --at 2026-01-03T00:00:00Z --key quiet"),
        ] {
            sandbox.ok(&line);
        }
        let comment = |line: &str| sandbox.json(line)["id"].as_str().unwrap().to_owned();
        let first = comment(&format!("comment 7 {PULLED} first --key one"));
        let reply = comment(&format!("comment 8 {PULLED} second --reply-to {first} --key two"));
        let number = |id: &str| u128::from_str_radix(&id.replace('-', ""), 16).unwrap();
        let comments = [number(&first), number(&reply)];
        sandbox.ok("feed 1");
        sandbox.ok("compact");
        sandbox.ok("verify");
        Self { sandbox, half_index, comments }
    }

    /// A copy of the store, to be damaged.
    fn copy(&self, name: &str) -> String {
        copy_folder(&self.sandbox.path("kinfolk-data"), &self.sandbox.path(name));
        name.to_owned()
    }

    /// What a store answers, and what it should by what was written to it.
    fn require_answers(&self, data: &str, users: &[u64]) {
        let ids = |line: &str| {
            let page = self.sandbox.json(&format!("{line} --all --data {data}"));
            let items = page["items"].as_array().unwrap().clone();
            let id = |item: &Value| item["id"].as_str().unwrap().parse::<u64>().unwrap();
            let mut ids: Vec<u64> = items.iter().map(id).collect();
            ids.sort_unstable();
            ids
        };
        let sorted = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable();
            numbers
        };
        for &user in users {
            let following = sorted(&mut followees(user).chain((user <= 3).then_some(QUIET)));
            let followers = sorted(&mut (1..=USERS).filter(|&other| followees(other).any(|id| id == user)));
            let friends = sorted(&mut followers.iter().copied().filter(|other| following.contains(other)));
            let counts = self.sandbox.json(&format!("counts {user} --data {data}"));
            assert_eq!(counts["following"], following.len(), "{data}: {user}");
            assert_eq!(counts["followers"], followers.len(), "{data}: {user}");
            assert_eq!(ids(&format!("following {user}")), following, "{data}: {user}");
            assert_eq!(ids(&format!("followers {user}")), followers, "{data}: {user}");
            assert_eq!(ids(&format!("friends {user}")), friends, "{data}: {user}");
        }
        assert_eq!(ids("feed 1"), [PULLED, PULLED_TOO, PUSHED], "{data}");
        assert_eq!(ids("posts 5"), [PULLED], "{data}");
    }

    /// Comments and their counts, and that repeating under a key changes nothing.
    fn require_comments_and_keys(&self, data: &str) {
        let json = |line: &str| self.sandbox.json(&format!("{line} --data {data}"));
        let thread = json(&format!("comments {PULLED} --tree"));
        assert_eq!(thread["items"][0]["reply_count"], 1, "{data}: {thread}");
        assert_eq!(json("comments --by 7")["items"].as_array().unwrap().len(), 1, "{data}");
        assert_eq!(json(&format!("comments {PULLED}"))["items"].as_array().unwrap().len(), 2, "{data}");
        for (line, id) in [("post 5 --key five", PULLED), (&*format!("post {QUIET} --key quiet"), PUSHED)] {
            let again = json(line);
            assert_eq!((&again["changed"], &again["id"]), (&false.into(), &id.to_string().into()), "{data}");
        }
        let again = json(&format!("comment 7 {PULLED} first --key one"));
        assert_eq!(again["changed"], false, "{data}: {again}");
    }

    /// Everything that can be wrong in the files of a store, and what `verify` says of it.
    fn damages(&self) -> Vec<Damage> {
        [edge_damages(), post_damages(), self.comment_damages(), inbox_damages(), vec![self.stale_index()]]
            .into_iter()
            .flatten()
            .collect()
    }

    /// A snapshot that says to be as new as the rows, but lacks half of the edges.
    fn stale_index(&self) -> Damage {
        let half = self.half_index.clone();
        Damage::new("stale index", "the index has other follow edges from 1 than the rows", move |store| {
            let path = store.join("index.snapshot");
            let newest = fs::read(&path).unwrap();
            fs::write(&path, &half).unwrap();
            // Magic, version, kind of ids and epoch are the same; then comes the position.
            change_checksummed(&path, |bytes| bytes[24..32].copy_from_slice(&newest[24..32]));
        })
    }

    fn comment_damages(&self) -> Vec<Damage> {
        let [first, reply] = self.comments;
        let of = |tag: u8, id: u128| [&[tag][..], &id.to_be_bytes()].concat();
        let comments = |name, said, change: Box<dyn Fn(&mut Tree)>| {
            Damage::new(name, said, move |store| change(&mut Tree::open(&store.join("comments"))))
        };
        let parent = [&[1][..], &PULLED.to_be_bytes()].concat();
        let state = [&[7][..], &parent].concat();
        vec![
            comments(
                "missing place",
                "the place of comment",
                Box::new(move |tree| tree.remove_only(&of(2, first))),
            ),
            comments("missing reply", "the replies to comment", {
                let key = [&[3][..], &parent, &first.to_be_bytes(), &reply.to_be_bytes()].concat();
                Box::new(move |tree| tree.remove_only(&key))
            }),
            comments(
                "missing in an author's list",
                "the comments by 7 differ",
                Box::new(|tree| tree.remove_only(&tagged(4, &[7]))),
            ),
            comments("missing comment count", "the count of comments on post 1000", {
                let state = state.clone();
                Box::new(move |tree| tree.remove_only(&state))
            }),
            comments("wrong comment count", "the count of comments on post 1000", {
                Box::new(move |tree| tree.insert(&state, &[&9_u64.to_be_bytes()[..], &[0]].concat()))
            }),
            comments(
                "wrong reply count",
                "the count of replies to comment",
                Box::new(move |tree| tree.insert(&of(8, first), &7_u64.to_be_bytes())),
            ),
            comments(
                "missing comment key",
                "an idempotency key of 7",
                Box::new(|tree| tree.remove_only(&comment_key())),
            ),
            comments(
                "a comment key that names another's comment",
                "an idempotency key of 7",
                Box::new(move |tree| {
                    let (key, value) = tree.row(&comment_key());
                    tree.insert(&key, &[&reply.to_be_bytes()[..], &value[16..]].concat());
                }),
            ),
        ]
    }
}

/// The row of the idempotency key of the first comment. There is another one for the key with the body that was sent under it.
fn comment_key() -> Vec<u8> {
    [tagged(6, &[7]), kinfolk_core::key_hash("one").to_vec()].concat()
}

/// Something that is done to the files of a store, and what must be said of it.
struct Damage {
    name: &'static str,
    said: &'static str,
    apply: Box<dyn Fn(&Path)>,
}

impl Damage {
    fn new(name: &'static str, said: &'static str, apply: impl Fn(&Path) + 'static) -> Self {
        Self { name, said, apply: Box::new(apply) }
    }
}

fn edge_damages() -> Vec<Damage> {
    const EDGE: Follow = Follow { follower: 3, followee: 4 };
    const NO_EDGE: Follow = Follow { follower: 4, followee: 3 };
    let list = |store: &Path, name: &str| Tree::open(&store.join("rows").join(name));
    vec![
        Damage::new("missing follower", "the followers list lacks follow edge 3 to 4", move |store| {
            list(store, "followers").remove_only(&list_key(4, &since(store, EDGE), 3));
        }),
        Damage::new("missing followee", "the following list lacks follow edge 3 to 4", move |store| {
            list(store, "following").remove_only(&list_key(3, &since(store, EDGE), 4));
        }),
        Damage::new("stray follower", "the followers list has the stray follow edge 4 to 3", move |store| {
            assert!(list(store, "pairs").rows(&pair_key(NO_EDGE)).is_empty());
            list(store, "followers").insert(&list_key(3, &since(store, EDGE), 4), &[]);
        }),
        Damage::new("stray followee", "the following list has the stray follow edge 4 to 3", move |store| {
            list(store, "following").insert(&list_key(4, &since(store, EDGE), 3), &[]);
        }),
    ]
}

fn post_damages() -> Vec<Damage> {
    let posts = |name, said, change: fn(&mut Tree)| {
        Damage::new(name, said, move |store| change(&mut Tree::open(&store.join("posts"))))
    };
    vec![
        posts("missing in an author's list", "the posts by 5 differ", |tree| {
            tree.remove_only(&tagged(2, &[5]));
        }),
        posts("wrong delivery", "the posts by 6 differ", |tree| {
            let (key, value) = tree.row(&tagged(2, &[6]));
            assert_eq!(value, [1], "it is pulled");
            tree.insert(&key, &[0]);
        }),
        posts("missing pulled author", "the posts by 5 differ", |tree| tree.remove_only(&tagged(4, &[5]))),
        posts("missing post key", "an idempotency key of 5", |tree| tree.remove_only(&tagged(3, &[5]))),
        posts("a post key that names another's post", "an idempotency key of 5", |tree| {
            let (key, value) = tree.row(&tagged(3, &[5]));
            tree.insert(&key, &[&PULLED_TOO.to_be_bytes()[..], &value[8..]].concat());
        }),
        posts("a post key with another time", "an idempotency key of 100", |tree| {
            let (key, mut value) = tree.row(&tagged(3, &[QUIET]));
            value[12] ^= 1;
            tree.insert(&key, &value);
        }),
        posts("a post key without sense", "an idempotency key of 6", |tree| {
            let (key, _) = tree.row(&tagged(3, &[6]));
            tree.insert(&key, b"?");
        }),
    ]
}

fn inbox_damages() -> Vec<Damage> {
    vec![
        Damage::new("inbox without a post", "the inbox of 1 lacks post 1002", |store| {
            change_inbox(store, |keys| {
                assert_eq!(keys.len(), 1);
                keys.clear();
            });
        }),
        Damage::new("inbox with a pulled post", "the inbox of 1 has post 1000", |store| {
            let at: u64 = 1_767_225_600_000;
            let stray = [&at.to_be_bytes()[2..], &PULLED.to_be_bytes()].concat();
            change_inbox(store, |keys| keys.push(stray.try_into().unwrap()));
        }),
    ]
}

/// Finds, repairs, and finds nothing any more; what was said first.
fn verify_and_repair(sandbox: &Sandbox, data: &str) -> String {
    let found = sandbox.run(&format!("verify --data {data}"));
    assert_eq!(found.status, 1, "{data}: {found:?}");
    assert!(found.stdout.contains("run 'kinfolk verify --repair' to repair"), "{data}: {found:?}");
    let repaired = sandbox.run(&format!("verify --repair --data {data}"));
    assert_eq!(repaired.status, 0, "{data}: {repaired:?}");
    assert!(repaired.stdout.ends_with("repaired\n"), "{data}: {repaired:?}");
    let clean = sandbox.json(&format!("verify --data {data}"));
    assert_eq!(clean["difference_count"], 0, "{data}: {clean}");
    found.stdout
}

#[test]
fn every_difference_is_found_and_repaired() {
    let specimen = Specimen::new();
    specimen.require_answers("kinfolk-data", &[1, 3, 4]);
    specimen.require_comments_and_keys("kinfolk-data");
    let mut wrong = Vec::new();
    for (number, damage) in specimen.damages().into_iter().enumerate() {
        let data = specimen.copy(&format!("damaged-{number}"));
        (damage.apply)(&specimen.sandbox.path(&data));
        let found = specimen.sandbox.run(&format!("verify --data {data}"));
        if found.status != 1 || !found.stdout.contains(damage.said) {
            wrong.push(format!("{}: {found:?}", damage.name));
            continue;
        }
        verify_and_repair(&specimen.sandbox, &data);
        specimen.require_answers(&data, &[4]);
        specimen.require_comments_and_keys(&data);
    }
    assert!(wrong.is_empty(), "not found as they should be:\n{}", wrong.join("\n"));
}

#[test]
fn all_differences_at_once_are_repaired() {
    let specimen = Specimen::new();
    let data = specimen.copy("damaged");
    for damage in specimen.damages() {
        // These take out a row that another one changes.
        if !["missing comment count", "missing post key", "missing comment key", "stale index"]
            .contains(&damage.name)
        {
            (damage.apply)(&specimen.sandbox.path(&data));
        }
    }
    verify_and_repair(&specimen.sandbox, &data);
    let users: Vec<u64> = (1..=USERS).collect();
    specimen.require_answers(&data, &users);
    specimen.require_comments_and_keys(&data);
}
