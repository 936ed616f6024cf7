//! Compares the authors' lists with the records, which are the truth, and repairs them.

use kinfolk_core::feed::{Delivery, PostKey};
use kinfolk_core::{Id, Result};
use lsm_tree::{AbstractTree, SeqNo};

use super::{Posts, Record, damaged, layout};
use crate::rows::tree_error;

/// A place in an author's list.
pub type Place = (Id, PostKey);

impl Posts {
    /// Every place where a list seems to differ from the records. Writes go on meanwhile: look again.
    pub fn suspects(&self, step: &dyn Fn(&'static str, u64)) -> Result<Vec<Place>> {
        let mut suspects = Vec::new();
        for (number, row) in (1..).zip(self.records(SeqNo::MAX)) {
            step("comparing posts", number);
            if let (_, Record::Present(post, _)) = row?
                && self.difference((post.author, post.key()))?.is_some()
            {
                suspects.push((post.author, post.key()));
            }
        }
        for (number, row) in (1..).zip(self.rows(&[layout::BY_AUTHOR], None, SeqNo::MAX)) {
            step("comparing authors' posts", number);
            let (key, value) = row?;
            let (author, at, _) = layout::read_author_row(self.ids, &key, &value).ok_or_else(damaged)?;
            // What the list lacks was found by its record.
            if self.difference((author, at))? == Some(None) {
                suspects.push((author, at));
            }
        }
        Ok(suspects)
    }

    /// What should be at a place of a list, if that is not what is there.
    pub fn difference(&self, (author, at): Place) -> Result<Option<Option<Delivery>>> {
        let expected = match self.record(at.id)? {
            Some(Record::Present(post, delivery)) if (post.author, post.key()) == (author, at) => {
                Some(delivery)
            }
            _ => None,
        };
        let key = layout::author_key(author, at);
        let found = self.tree.get(&key, SeqNo::MAX).map_err(tree_error)?;
        let found = found
            .map(|value| layout::read_author_row(self.ids, &key, &value).ok_or_else(damaged))
            .transpose()?
            .map(|(.., delivery)| delivery);
        let noted = expected != Some(Delivery::Pull) || self.pulled_authors().binary_search(&author).is_ok();
        Ok((expected != found || !noted).then_some(expected))
    }

    /// Brings a place of a list back to what the record says. Runs on the writer's thread.
    pub fn mend(&self, (author, at): Place) -> Result<()> {
        match self.difference((author, at))? {
            None => {}
            Some(Some(delivery)) => self.put_in_list(author, at, delivery),
            Some(None) => self.remove(layout::author_key(author, at)),
        }
        Ok(())
    }

    /// Takes a place out of a list or puts one in, as damage would.
    #[cfg(test)]
    pub fn damage(&self, (author, at): Place, present: Option<Delivery>) {
        match present {
            Some(delivery) => self.insert(layout::author_key(author, at), layout::author_value(delivery)),
            None => self.remove(layout::author_key(author, at)),
        }
    }
}
