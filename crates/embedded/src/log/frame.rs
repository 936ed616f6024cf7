//! The bytes of one group commit: events that were synced together.
//!
//! ```text
//! frame  = length u32 | crc32c u32 | first position u64 | event count u32 | floor u48 | body
//! event  = type u8 | kind u8 | at u48 | rest by type
//!   1 followed    follower | followee
//!   2 unfollowed  follower | followee | since u48
//!   3 imported    import number u64 | edges that were added u64; in logs of older versions, edges that were offered
//!   4 posted      flags u8 | id | author | created_at u48 | payload length u32, payload (flag 2) | key 16 bytes (flag 4)
//!   5 deleted     id | author | created_at u48
//!   6 to 9 are about comments, and documented with them
//! ```
//!
//! Integers are little-endian, ids big-endian (8 or 16 bytes), times milliseconds. `length` counts the bytes
//! after the checksum; the checksum covers `length` and those bytes. `floor` is the earliest `since` that the
//! store may give out afterwards. A length of 0 is the zeroed space that lies ready for the next frame. Flags of a
//! post: 1 it is pulled, 2 it has a payload, 4 it has an idempotency key, 8 the store made its id.

use std::sync::Arc;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::feeds::{Delivery, Post, Registration};
use kinfolk_core::graph::{Edge, EdgeEvent};
use kinfolk_core::{EdgeKind, Id, IdKind, Sequence, Shard, Timestamp};

use super::comment_events::LoggedCommentEvent;
use crate::disk::byte_reader::{ByteReader, push_bytes};

/// Length and checksum.
pub(crate) const PREFIX_LEN: usize = 8;
const HEADER_LEN: usize = 8 + 4 + 6;
/// No frame is longer; a length beyond it is damage, and reading it would only waste memory.
pub(crate) const LENGTH_MAX: usize = 256 << 20;

const PULLED: u8 = 1;
const WITH_PAYLOAD: u8 = 2;
const WITH_KEY: u8 = 4;
const GENERATED_ID: u8 = 8;

/// An event as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its position in the log.
    pub position: Sequence,
    /// When it was accepted.
    pub at: Timestamp,
    /// Which kind of edge it is about; `Follow` where it is about none.
    pub kind: EdgeKind,
    /// What happened.
    pub body: EventBody,
}

/// What an event says. Most are about edges: what is larger than those is behind a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventBody {
    /// An edge was made; its `since` is the event's `at`.
    Followed(Edge),
    /// An edge was removed that had existed since then. Replaying it needs no other knowledge.
    Unfollowed(Edge, Timestamp),
    /// The import of that number took effect.
    Imported {
        /// Names the folder with the sorted edges.
        number: u64,
        /// How many edges it added.
        edges: u64,
    },
    /// A post was registered.
    Posted(Arc<Registration>),
    /// A post was deleted.
    PostDeleted {
        /// Its id.
        id: Id,
        /// Who had made it.
        author: Id,
        /// When it had been made.
        created_at: Timestamp,
    },
    /// Something happened in a comment thread.
    Comment(Arc<LoggedCommentEvent>),
}

impl Event {
    /// The change of an edge that it says, if it says one.
    pub(crate) fn edge_event(&self) -> Option<EdgeEvent> {
        let (edge, removed_since) = match self.body {
            EventBody::Followed(edge) => (edge, None),
            EventBody::Unfollowed(edge, since) => (edge, Some(since)),
            _ => return None,
        };
        Some(EdgeEvent { kind: self.kind, edge, at: self.at, removed_since })
    }

    /// The change as consumers read it. They see the body of a comment, or the payload of a post, only if that is said to be current.
    pub(crate) fn into_change(self, is_current: bool) -> Change {
        let Self { position, at, kind, body } = self;
        let body = match body {
            EventBody::Followed(edge) => ChangeBody::Followed { kind, edge },
            EventBody::Unfollowed(edge, since) => ChangeBody::Unfollowed { kind, edge, since },
            EventBody::Imported { edges, .. } => ChangeBody::Imported { kind, edges },
            EventBody::Posted(registration) => {
                let Registration { post, delivery, .. } = Arc::unwrap_or_clone(registration);
                let payload = post.payload.filter(|_| is_current);
                ChangeBody::Posted { post: Post { payload, ..post }, delivery }
            }
            EventBody::PostDeleted { id, author, created_at } => {
                ChangeBody::PostDeleted { id, author, created_at }
            }
            EventBody::Comment(event) => {
                ChangeBody::Comment(Arc::unwrap_or_clone(event).into_change(is_current))
            }
        };
        Change { position: position.on(Shard::ONLY), at, body }
    }
}

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The earliest `since` that may be given out afterwards.
    pub floor: Timestamp,
    /// The events, in order of position.
    pub events: Vec<Event>,
}

/// Appends a time in 48 bits.
pub(crate) fn push_time(bytes: &mut Vec<u8>, time: Timestamp) {
    bytes.extend_from_slice(&time.millis().to_le_bytes()[..6]);
}

fn read_time(bytes: &[u8]) -> Option<Timestamp> {
    let bytes: [u8; 6] = bytes.try_into().ok()?;
    let mut word = [0; 8];
    word[..6].copy_from_slice(&bytes);
    Some(Timestamp::from_millis(u64::from_le_bytes(word)))
}

/// Builds a frame event by event.
#[derive(Debug)]
pub(crate) struct FrameBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl FrameBuilder {
    /// An empty frame whose first event will have this position.
    pub(crate) fn new(first: Sequence) -> Self {
        let mut bytes = Vec::with_capacity(4_096);
        bytes.resize(PREFIX_LEN, 0);
        bytes.extend_from_slice(&first.0.to_le_bytes());
        bytes.resize(PREFIX_LEN + HEADER_LEN, 0);
        Self { bytes, count: 0 }
    }

    /// Appends an event.
    pub(crate) fn push(&mut self, event: &Event) {
        let bytes = &mut self.bytes;
        let tag = match &event.body {
            EventBody::Followed(_) => 1,
            EventBody::Unfollowed(..) => 2,
            EventBody::Imported { .. } => 3,
            EventBody::Posted(_) => 4,
            EventBody::PostDeleted { .. } => 5,
            EventBody::Comment(event) => event.tag(),
        };
        bytes.extend_from_slice(&[tag, event.kind.number()]);
        push_time(bytes, event.at);
        match &event.body {
            EventBody::Followed(edge) => push_edge(bytes, *edge),
            EventBody::Unfollowed(edge, since) => {
                push_edge(bytes, *edge);
                push_time(bytes, *since);
            }
            EventBody::Imported { number, edges } => {
                bytes.extend_from_slice(&number.to_le_bytes());
                bytes.extend_from_slice(&edges.to_le_bytes());
            }
            EventBody::Posted(registration) => push_registration(bytes, registration),
            EventBody::PostDeleted { id, author, created_at } => {
                id.push_to(bytes);
                author.push_to(bytes);
                push_time(bytes, *created_at);
            }
            EventBody::Comment(event) => event.encode(bytes),
        }
        self.count += 1;
    }

    /// The bytes to write.
    pub(crate) fn finish(mut self, floor: Timestamp) -> Vec<u8> {
        self.bytes[PREFIX_LEN + 8..][..4].copy_from_slice(&self.count.to_le_bytes());
        let mut time = Vec::with_capacity(6);
        push_time(&mut time, floor);
        self.bytes[PREFIX_LEN + 12..][..6].copy_from_slice(&time);
        let length = (self.bytes.len() - PREFIX_LEN) as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum(length, &self.bytes[PREFIX_LEN..]);
        self.bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

fn push_edge(bytes: &mut Vec<u8>, edge: Edge) {
    edge.follower.push_to(bytes);
    edge.followee.push_to(bytes);
}

fn push_registration(bytes: &mut Vec<u8>, registration: &Registration) {
    let Registration { post, delivery, key, is_id_generated } = registration;
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    let flags = flag(*delivery == Delivery::Pull, PULLED)
        | flag(post.payload.is_some(), WITH_PAYLOAD)
        | flag(key.is_some(), WITH_KEY)
        | flag(*is_id_generated, GENERATED_ID);
    bytes.push(flags);
    post.id.push_to(bytes);
    post.author.push_to(bytes);
    push_time(bytes, post.created_at);
    if let Some(payload) = &post.payload {
        push_bytes(bytes, payload.as_bytes());
    }
    bytes.extend_from_slice(key.as_ref().map_or(&[][..], |key| key));
}

fn checksum(length: u32, rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), rest)
}

/// Length and checksum of the frame that starts here; `None` where zeroed space or nonsense starts.
pub(crate) fn read_prefix(prefix: [u8; PREFIX_LEN]) -> Option<(usize, u32)> {
    let [a, b, c, d, checksum @ ..] = prefix;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    (HEADER_LEN..=LENGTH_MAX).contains(&length).then_some((length, u32::from_le_bytes(checksum)))
}

/// The first position and the event count of a frame, from the bytes after its prefix.
pub(crate) fn read_extent(rest: &[u8]) -> Option<(Sequence, u32)> {
    let first = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?);
    let count = u32::from_le_bytes(rest.get(8..12)?.try_into().ok()?);
    Some((Sequence(first), count))
}

/// Decodes the bytes after the prefix; `None` if they are damaged.
pub(crate) fn decode(ids: IdKind, expected_checksum: u32, rest: &[u8]) -> Option<Frame> {
    (checksum(rest.len() as u32, rest) == expected_checksum).then_some(())?;
    let (first, count) = read_extent(rest)?;
    let floor = read_time(rest.get(12..HEADER_LEN)?)?;
    let mut body = ByteReader { ids, bytes: rest.get(HEADER_LEN..)? };
    let mut events = Vec::with_capacity(count as usize);
    for offset in 0..u64::from(count) {
        events.push(decode_event(Sequence(first.0 + offset), &mut body)?);
    }
    body.bytes.is_empty().then_some(Frame { floor, events })
}

fn decode_event(position: Sequence, reader: &mut ByteReader<'_>) -> Option<Event> {
    let [tag, kind] = reader.take()?;
    let (kind, at) = (EdgeKind::from_number(kind)?, take_time(reader)?);
    let body = match tag {
        1 => EventBody::Followed(take_edge(reader)?),
        2 => EventBody::Unfollowed(take_edge(reader)?, take_time(reader)?),
        3 => EventBody::Imported {
            number: u64::from_le_bytes(reader.take()?),
            edges: u64::from_le_bytes(reader.take()?),
        },
        4 => EventBody::Posted(Arc::new(decode_registration(reader)?)),
        5 => {
            EventBody::PostDeleted { id: reader.id()?, author: reader.id()?, created_at: take_time(reader)? }
        }
        tag => EventBody::Comment(Arc::new(LoggedCommentEvent::decode(tag, reader)?)),
    };
    Some(Event { position, at, kind, body })
}

fn take_edge(reader: &mut ByteReader<'_>) -> Option<Edge> {
    Some(Edge { follower: reader.id()?, followee: reader.id()? })
}

fn take_time(reader: &mut ByteReader<'_>) -> Option<Timestamp> {
    read_time(&reader.take::<6>()?)
}

fn decode_registration(reader: &mut ByteReader<'_>) -> Option<Registration> {
    let [flags] = reader.take()?;
    (flags & !(PULLED | WITH_PAYLOAD | WITH_KEY | GENERATED_ID) == 0).then_some(())?;
    let (id, author, created_at) = (reader.id()?, reader.id()?, take_time(reader)?);
    let payload = if flags & WITH_PAYLOAD != 0 { Some(reader.string()?.into()) } else { None };
    let key = if flags & WITH_KEY != 0 { Some(reader.take()?) } else { None };
    Some(Registration {
        post: Post { id, author, created_at, payload },
        delivery: if flags & PULLED != 0 { Delivery::Pull } else { Delivery::Push },
        key,
        is_id_generated: flags & GENERATED_ID != 0,
    })
}

#[cfg(test)]
mod tests {
    use kinfolk_core::KeyHash;

    use super::*;

    fn posted(
        id: Id,
        author: Id,
        (delivery, payload, key, is_id_generated): (Delivery, Option<&str>, Option<KeyHash>, bool),
    ) -> EventBody {
        let created_at = Timestamp::from_millis(0x0605_0403_0201);
        let post = Post { id, author, created_at, payload: payload.map(Arc::from) };
        EventBody::Posted(Arc::new(Registration { post, delivery, key, is_id_generated }))
    }

    fn events(of: impl Fn(u64) -> Id) -> Vec<Event> {
        let edge = Edge { follower: of(1), followee: of(2) };
        let bodies = [
            EventBody::Followed(edge),
            EventBody::Unfollowed(edge, Timestamp::from_millis(5)),
            EventBody::Imported { number: 3, edges: 1 << 40 },
            posted(of(3), of(4), (Delivery::Push, None, None, true)),
            posted(of(3), of(4), (Delivery::Pull, Some("{\"text\":\"ä\"}"), Some([7; 16]), false)),
            posted(of(3), of(4), (Delivery::Push, Some(""), None, true)),
            EventBody::PostDeleted { id: of(5), author: of(6), created_at: Timestamp::MIN },
        ];
        let event = |(offset, body): (u64, EventBody)| Event {
            position: Sequence(10 + offset),
            at: Timestamp::MAX,
            kind: EdgeKind::Block,
            body,
        };
        (0..).zip(bodies).map(event).collect()
    }

    fn encode(events: &[Event]) -> Vec<u8> {
        let mut builder = FrameBuilder::new(events[0].position);
        events.iter().for_each(|event| builder.push(event));
        builder.finish(Timestamp::from_millis(77))
    }

    fn decode_all(ids: IdKind, bytes: &[u8]) -> Option<Frame> {
        let (length, checksum) = read_prefix(*bytes.first_chunk()?)?;
        decode(ids, checksum, bytes.get(PREFIX_LEN..PREFIX_LEN + length)?)
    }

    #[test]
    fn frames_round_trip_for_both_id_kinds() {
        for (ids, events) in [
            (IdKind::Integer, events(Id::Integer)),
            (IdKind::Uuid, events(|value| Id::Uuid(u128::from(value) << 100))),
        ] {
            let frame = decode_all(ids, &encode(&events)).unwrap();
            assert_eq!(frame.events, events);
            assert_eq!(frame.floor.millis(), 77);
        }
    }

    /// The layout is a promise to every log on disk.
    #[test]
    fn posts_are_laid_out_as_documented() {
        let body = posted(Id::Integer(3), Id::Integer(4), (Delivery::Pull, Some("{}"), Some([9; 16]), true));
        let event = Event { position: Sequence(1), at: Timestamp::MIN, kind: EdgeKind::Follow, body };
        let bytes = encode(&[event]);
        let fields = &bytes[PREFIX_LEN + HEADER_LEN + 8..];
        let place = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4, 5, 6];
        let expected = [&[15][..], &place, &[2, 0, 0, 0], b"{}", &[9; 16]].concat();
        assert_eq!(fields, expected);
    }

    #[test]
    fn an_unknown_flag_is_damage() {
        let mut bytes = vec![16];
        push_edge(&mut bytes, Edge { follower: Id::Integer(1), followee: Id::Integer(2) });
        push_time(&mut bytes, Timestamp::MIN);
        assert_eq!(decode_registration(&mut ByteReader { ids: IdKind::Integer, bytes: &bytes }), None);
        bytes[0] = 0;
        assert!(decode_registration(&mut ByteReader { ids: IdKind::Integer, bytes: &bytes }).is_some());
    }

    /// Edges are what a log is full of: posts must not make their events larger.
    #[test]
    fn an_event_is_as_small_as_an_edge_needs() {
        assert!(size_of::<EventBody>() <= size_of::<(Edge, Timestamp)>() + 16);
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = encode(&events(Id::Integer));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_all(IdKind::Integer, &damaged), None, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(decode_all(IdKind::Integer, &bytes[..cut]), None, "cut at {cut}");
        }
    }
}
