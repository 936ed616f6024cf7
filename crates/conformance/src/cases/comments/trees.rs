//! Cases of threads as trees: for every thread and request, following all cursors returns every comment
//! once, under the comment that it answers.

use std::collections::BTreeMap;

use kinfolk_core::ErrorCode;
use kinfolk_core::PageRequest;
use kinfolk_core::comments::{Comment, CommentId, CommentNode, Parent, TreeShape, Viewer, Withdrawal};

use super::helpers::ids;
use crate::cases::subject::assert_code;
use crate::cases::subject::{COMMENTS, PAGE_LIMIT_MAX, Subject};
use crate::ports::CommentPorts;
use crate::random::Random;
use crate::threads::block_on;

super::list_cases![cases: CommentPorts;
    a_tree_of_comments_without_replies,
    a_tree_of_one_long_branch,
    a_tree_of_one_comment_with_many_replies,
    a_tree_with_branches_everywhere,
    a_tree_of_any_shape,
    a_tree_has_the_first_replies_of_each,
    a_tree_has_so_many_comments_at_most,
    a_tree_keeps_tombstones_and_their_replies,
    a_tree_has_limits,
];

const VIEWER: Viewer = Viewer { user: None, is_moderator: false };

/// Writes a thread whose comments answer the one of that number, or nobody.
fn write<S: CommentPorts>(
    subject: &Subject<S>,
    parent: Parent,
    replies_to: &[Option<usize>],
) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    for above in replies_to {
        let request = match above {
            None => subject.remark(parent, 1, "top"),
            Some(above) => subject.answer(&comments[*above], 2, "reply"),
        };
        comments.push(subject.say(&request));
    }
    subject.refreshed(&comments)
}

/// What was met while all cursors are followed: the replies to each, in the order of meeting them.
type Met = BTreeMap<Option<CommentId>, Vec<Comment>>;

/// Looks at one answer, and returns the cursors in it with the comments that they belong to.
fn look(
    nodes: &[CommentNode],
    under: Option<CommentId>,
    shape: TreeShape,
    met: &mut Met,
) -> Vec<(Option<CommentId>, String)> {
    let mut cursors = Vec::new();
    for node in nodes {
        assert_eq!(node.comment.reply_to, under, "{node:?}");
        met.entry(under).or_default().push(node.comment.clone());
        assert!(node.replies.len() <= shape.replies, "{shape:?}: {node:?}");
        assert!(shape.depth > 0 || node.replies.is_empty(), "{shape:?}: {node:?}");
        let hidden = node.comment.reply_count > node.replies.len() as u64;
        assert_eq!(node.next.is_some(), hidden, "a cursor where there is more: {node:?}");
        cursors.extend(node.next.iter().map(|next| (Some(node.comment.id), next.clone())));
        let below = TreeShape { depth: shape.depth.saturating_sub(1), ..shape };
        cursors.extend(look(&node.replies, Some(node.comment.id), below, met));
    }
    cursors
}

fn size(nodes: &[CommentNode]) -> usize {
    nodes.iter().map(|node| 1 + size(&node.replies)).sum()
}

/// Follows every cursor of every answer, in some order.
fn follow_all<S: CommentPorts>(subject: &Subject<S>, parent: Parent, shape: TreeShape, limit: usize) -> Met {
    let mut met = Met::new();
    let mut open: Vec<(Option<CommentId>, Option<String>)> = vec![(None, None)];
    let mut answers = 0;
    while let Some((under, cursor)) = open.pop() {
        answers += 1;
        assert!(answers < 10_000, "{shape:?} in pages of {limit} does not end");
        let page = PageRequest { limit, cursor: cursor.as_deref() };
        let tree = block_on(subject.graph.comment_tree(parent, shape, page, (VIEWER, None))).unwrap();
        assert!(tree.items.len() <= limit && size(&tree.items) <= COMMENTS.tree_comments_max);
        assert!(cursor.is_none() || !tree.items.is_empty(), "a cursor leads to something");
        open.extend(tree.next.map(|next| (under, Some(next))));
        let cursors = look(&tree.items, under, shape, &mut met);
        open.extend(cursors.into_iter().map(|(under, next)| (under, Some(next))));
    }
    met
}

/// Whatever is asked, everything is met once and in its place.
fn assert_whole<S: CommentPorts>(subject: &Subject<S>, parent: Parent, comments: &[Comment]) {
    let mut expected = Met::new();
    for comment in comments {
        let comment = block_on(subject.graph.read_comment(comment.id, VIEWER, None)).unwrap();
        expected.entry(comment.reply_to).or_default().push(comment);
    }
    for depth in 0..=COMMENTS.depth_max {
        for replies in [1, 2, 3, 5, 20] {
            for limit in [1, 2, 3, 7, 12, 20] {
                let shape = TreeShape { depth, replies };
                let met = follow_all(subject, parent, shape, limit);
                assert_eq!(met, expected, "{shape:?} in pages of {limit}");
            }
        }
    }
}

fn a_tree_of_comments_without_replies<S: CommentPorts>(subject: &Subject<S>) {
    for parent in subject.threads_of_all_kinds() {
        assert_whole(subject, parent, &[]);
        let comments = write(subject, parent, &[None; 14]);
        assert_whole(subject, parent, &comments);
    }
}

fn a_tree_of_one_long_branch<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let comments = write(subject, parent, &[None, Some(0), Some(1), Some(2), Some(3)]);
    assert_whole(subject, parent, &comments);
}

fn a_tree_of_one_comment_with_many_replies<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let mut shape = vec![Some(0); 26];
    shape[0] = None;
    let comments = write(subject, parent, &shape);
    assert_whole(subject, parent, &comments);
}

fn a_tree_with_branches_everywhere<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    // Two replies to each, in the order of levels: 30 in all.
    let shape: Vec<Option<usize>> =
        (0..30_usize).map(|number| number.checked_sub(2).map(|below| below / 2)).collect();
    let comments = write(subject, parent, &shape);
    assert_eq!(comments.iter().map(|comment| comment.depth).max(), Some(3));
    assert_whole(subject, parent, &comments);
}

fn a_tree_of_any_shape<S: CommentPorts>(subject: &Subject<S>) {
    let mut random = Random::new(7);
    for (number, breadth) in [(50, 2), (51, 5)] {
        let parent = subject.post_thread(number);
        let mut depths: Vec<u8> = Vec::new();
        let mut shape = Vec::new();
        for at in 0..24_usize {
            let above = random.below(at as u64 + breadth) as usize;
            let above = depths.get(above).filter(|depth| **depth < COMMENTS.depth_max).map(|_| above);
            depths.push(above.map_or(0, |above| depths[above] + 1));
            shape.push(above);
        }
        let comments = write(subject, parent, &shape);
        for comment in comments.iter().step_by(3) {
            subject.bury(comment.id, Withdrawal::Remove("rude".into()));
        }
        assert_whole(subject, parent, &comments);
    }
}

fn a_tree_has_the_first_replies_of_each<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    // 0 and 1 at the top; 2 to 5 answer 0; 6 answers 2; 7 answers 6; 8 answers 1.
    let shape = [None, None, Some(0), Some(0), Some(0), Some(0), Some(2), Some(6), Some(1)];
    let comments = write(subject, parent, &shape);
    let read = |depth, replies, cursor: Option<&str>| {
        let (shape, page) = (TreeShape { depth, replies }, PageRequest { limit: 5, cursor });
        block_on(subject.graph.comment_tree(parent, shape, page, (VIEWER, None))).unwrap()
    };
    let below =
        |nodes: &[CommentNode]| -> Vec<CommentId> { nodes.iter().map(|node| node.comment.id).collect() };
    let tree = read(2, 3, None);
    assert_eq!((below(&tree.items), &tree.next), (ids(&comments[..2]), &None));
    let (first, second) = (&tree.items[0], &tree.items[1]);
    assert_eq!(below(&first.replies), ids(&comments[2..5]));
    assert_eq!((below(&second.replies), &second.next), (vec![comments[8].id], &None));
    let third = &first.replies[0];
    assert_eq!((below(&third.replies), &third.next), (vec![comments[6].id], &None));
    // What is too deep has a cursor only.
    let sixth = &third.replies[0];
    assert!(sixth.replies.is_empty() && sixth.next.is_some(), "{sixth:?}");
    assert_eq!(below(&read(0, 1, sixth.next.as_deref()).items), [comments[7].id]);
    let rest = read(2, 3, first.next.as_deref());
    assert_eq!((below(&rest.items), rest.next), (vec![comments[5].id], None));
    let flat = read(0, 3, None);
    assert_eq!(below(&flat.items), ids(&comments[..2]));
    assert_eq!(below(&read(0, 3, flat.items[0].next.as_deref()).items), ids(&comments[2..6]));
    assert!(flat.items.iter().all(|node| node.replies.is_empty()));
}

fn a_tree_has_so_many_comments_at_most<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let most = COMMENTS.tree_comments_max;
    let shape: Vec<Option<usize>> = (0..most).map(|_| None).chain((0..most).map(Some)).collect();
    write(subject, parent, &shape);
    let read = |limit| {
        let (shape, page) = (TreeShape { depth: 2, replies: 1 }, PageRequest { limit, cursor: None });
        block_on(subject.graph.comment_tree(parent, shape, page, (VIEWER, None))).unwrap().items
    };
    let full = read(PAGE_LIMIT_MAX);
    assert_eq!((full.len(), size(&full)), (most, most));
    assert!(full.iter().all(|node| node.next.is_some()), "branches that have no room have a cursor");
    let half = read(most / 2);
    assert_eq!((half.len(), size(&half)), (most / 2, most));
    assert!(half.iter().all(|node| node.replies.len() == 1 && node.next.is_none()));
}

fn a_tree_keeps_tombstones_and_their_replies<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let comments = write(subject, parent, &[None, Some(0), Some(1), Some(1), None, Some(4)]);
    for (at, withdrawal) in
        [(0, Withdrawal::Delete), (1, Withdrawal::Remove("rude".into())), (4, Withdrawal::Purge)]
    {
        subject.bury(comments[at].id, withdrawal);
    }
    let (shape, page) = (TreeShape { depth: 3, replies: 2 }, PageRequest { limit: 5, cursor: None });
    let tree = block_on(subject.graph.comment_tree(parent, shape, page, (VIEWER, None))).unwrap();
    assert_eq!(size(&tree.items), 6);
    assert_whole(subject, parent, &comments);
    let texts = format!("{tree:?}");
    assert_eq!((texts.matches("Some(\"reply\")").count(), texts.contains("rude")), (3, false));
}

fn a_tree_has_limits<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let read = |depth, replies, limit| {
        let page = PageRequest { limit, cursor: None };
        block_on(subject.graph.comment_tree(parent, TreeShape { depth, replies }, page, (VIEWER, None)))
    };
    let (depth_max, max) = (COMMENTS.depth_max, PAGE_LIMIT_MAX);
    assert_code(read(depth_max + 1, 1, 1), ErrorCode::InvalidRequest);
    for wrong in [0, max + 1, usize::MAX] {
        assert_code(read(1, wrong, 1), ErrorCode::LimitOutOfRange);
        assert_code(read(1, 1, wrong), ErrorCode::LimitOutOfRange);
    }
    assert_eq!(read(depth_max, max, max).unwrap().items, []);
}
