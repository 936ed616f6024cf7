//! Events: the changes of a fleet as they are in its Kafka topic.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Id, Time};

/// A message of the topic: one change of the log of a shard.
///
/// Every event has every field, `null` where there is nothing, so that one flat schema describes them all. It has neither the body
/// of a comment nor the payload of a post: a purge could not reach them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the format, [`Event::VERSION`]. It rises only with changes that an older reader would misread.
    pub version: u32,
    /// The life of the log. A higher one than before: the fleet was restored, and its log may have lost changes.
    pub epoch: u64,
    /// The shard, which is also the partition.
    pub shard: u16,
    /// The place in the log of the shard. There are no gaps; the first change has 1.
    pub sequence: u64,
    /// What happened: the kind of the edge, such as `follow`, with the prefix `un` if it was removed; or `imported`. Later
    /// versions may add types.
    pub r#type: Cow<'static, str>,
    /// When.
    pub at: Time,
    /// The follower.
    pub follower: Option<Id>,
    /// The followee.
    pub followee: Option<Id>,
    /// Since when the edge exists after the change, if it does.
    pub since: Option<Time>,
    /// Since when the edge existed before the change, if it did.
    pub previous: Option<Time>,
}

impl Event {
    /// The version that this library writes and reads.
    pub const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers depend on these names.
    #[test]
    fn an_event_is_flat_and_has_every_field() {
        let event = Event {
            version: Event::VERSION,
            epoch: 3,
            shard: 12,
            sequence: 41,
            r#type: "unfollow".into(),
            at: kinfolk_core::Timestamp::from_millis(5).into(),
            follower: Some(Id::from(1)),
            followee: Some(Id::from(2)),
            since: None,
            previous: Some(kinfolk_core::Timestamp::from_millis(4).into()),
        };
        let json = serde_json::to_string(&event).unwrap();
        let expected = r#"{"version":1,"epoch":3,"shard":12,"sequence":41,"type":"unfollow","at":"1970-01-01T00:00:00.005Z","follower":"1","followee":"2","since":null,"previous":"1970-01-01T00:00:00.004Z"}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
        let with_more = json.replace("{\"version\"", "{\"later\":[1],\"version\"");
        assert_eq!(serde_json::from_str::<Event>(&with_more).unwrap(), event);
    }
}
