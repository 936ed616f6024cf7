//! Posts of several sources in one order, each once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kinfolk_core::Result;
use kinfolk_core::feeds::{Delivery, PostKey};

/// Keys in the order of lists, from new to old, with how the posts are delivered.
pub(crate) type Source<'a> = Box<dyn Iterator<Item = Result<(PostKey, Delivery)>> + 'a>;

/// A merge of sources. A key that several have comes once.
pub(crate) struct Merge<'a> {
    sources: Vec<Source<'a>>,
    /// The next key of each source that has one; what comes first in lists is on top.
    heads: BinaryHeap<Reverse<(PostKey, usize)>>,
    /// How the next post of each source is delivered.
    deliveries: Vec<Delivery>,
    last: Option<PostKey>,
}

impl<'a> Merge<'a> {
    /// Merges sources.
    pub(crate) fn new(sources: Vec<Source<'a>>) -> Result<Self> {
        let heads = BinaryHeap::with_capacity(sources.len());
        let deliveries = vec![Delivery::Push; sources.len()];
        let mut merge = Self { sources, heads, deliveries, last: None };
        for source in 0..merge.sources.len() {
            merge.advance(source)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, source: usize) -> Result<()> {
        if let Some((key, delivery)) = self.sources[source].next().transpose()? {
            self.heads.push(Reverse((key, source)));
            self.deliveries[source] = delivery;
        }
        Ok(())
    }

    /// The next key.
    pub(crate) fn next(&mut self) -> Result<Option<(PostKey, Delivery)>> {
        while let Some(Reverse((key, source))) = self.heads.pop() {
            let delivery = self.deliveries[source];
            self.advance(source)?;
            if self.last != Some(key) {
                self.last = Some(key);
                return Ok(Some((key, delivery)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{Id, Timestamp};

    use super::*;

    #[test]
    fn each_key_comes_once_from_new_to_old() {
        let key = |time, id| PostKey { since: Timestamp::from_millis(time), id: Id::Integer(id) };
        let pushed = |key| Ok((key, Delivery::Push));
        let source = |keys: Vec<PostKey>| -> Source<'_> { Box::new(keys.into_iter().map(pushed)) };
        let sources = vec![
            source(vec![key(9, 1), key(5, 2), key(5, 1)]),
            source(vec![]),
            source(vec![key(9, 2), key(5, 2), key(1, 1)]),
        ];
        let mut merge = Merge::new(sources).unwrap();
        let mut all = Vec::new();
        while let Some((key, _)) = merge.next().unwrap() {
            all.push(key);
        }
        assert_eq!(all, [key(9, 2), key(9, 1), key(5, 2), key(5, 1), key(1, 1)]);
    }
}
