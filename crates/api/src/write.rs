//! Outcomes of writes. REST carries them in headers; the command line prints them.

use serde::{Deserialize, Serialize};

/// The outcome of a write that returns nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteOutcome {
    /// Whether the write changed anything.
    pub changed: bool,
    /// The consistency token: a read with it sees the write.
    pub token: String,
}

/// The outcome of a write, and the item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written<T> {
    /// Whether the write changed anything: false if it repeated an earlier one.
    pub changed: bool,
    /// The consistency token: a read with it sees the write.
    pub token: String,
    /// The item.
    #[serde(flatten)]
    pub item: T,
}

impl<T> Written<T> {
    /// The outcome of writing an item.
    pub fn new(WriteOutcome { changed, token }: WriteOutcome, item: T) -> Self {
        Self { changed, token, item }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Id, Payload, Post};

    #[test]
    fn the_item_follows_the_outcome() {
        let outcome = WriteOutcome { changed: true, token: "t".to_owned() };
        let time = "1970-01-01T00:00:00.005Z".parse().unwrap();
        let (id, author, payload) = (Id::from(7), Id::from(1), Some(Payload::from("[1.10]".to_owned())));
        let written = Written::new(outcome, Post { id, author, created_at: time, payload });
        let json = r#"{"changed":true,"token":"t","id":"7","author":"1","created_at":"1970-01-01T00:00:00.005Z","payload":[1.10]}"#;
        assert_eq!(serde_json::to_string(&written).unwrap(), json);
    }
}
