//! A model of a disk: what programs see, and what would be left after a power loss. Content is durable only after a
//! sync of the file, a name only after a sync of its folder: stricter than any one file system.
//!
//! Holds files and folders; `replay` turns calls into changes of them, `crash` draws states from them.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Names a file or folder, whatever it is called.
pub type NodeId = usize;

/// A change of a file that is not durable yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    Write { offset: usize, data: Vec<u8> },
    Resize { length: usize },
}

/// A change of a folder that is not durable yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryChange {
    Add { name: String, node: NodeId },
    Remove { name: String },
    Rename { from: String, to: String },
}

/// Something with a current state, a durable one, and the changes that lead from this to that.
#[derive(Clone, Debug)]
pub struct Versions<State, Change> {
    pub current: State,
    pub durable: State,
    pub pending: VecDeque<Change>,
    /// How many changes have left `pending`: numbers them for good.
    settled: usize,
}

pub type File = Versions<Vec<u8>, FileChange>;
pub type Folder = Versions<BTreeMap<String, NodeId>, EntryChange>;

#[derive(Clone, Debug)]
pub enum Node {
    File(File),
    Folder(Folder),
}

/// A change that can be made to a state.
pub trait ApplyTo<State> {
    fn apply_to(&self, state: &mut State);
}

impl ApplyTo<Vec<u8>> for FileChange {
    fn apply_to(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => {
                let end = offset + data.len();
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(data);
            }
            Self::Resize { length } => content.resize(*length, 0),
        }
    }
}

impl ApplyTo<BTreeMap<String, NodeId>> for EntryChange {
    fn apply_to(&self, entries: &mut BTreeMap<String, NodeId>) {
        match self {
            Self::Add { name, node } => {
                entries.insert(name.clone(), *node);
            }
            Self::Remove { name } => {
                entries.remove(name);
            }
            Self::Rename { from, to } => {
                let node = entries.remove(from).expect("a renamed entry exists");
                entries.insert(to.clone(), node);
            }
        }
    }
}

impl<State: Clone, Change: ApplyTo<State>> Versions<State, Change> {
    fn durable(state: State) -> Self {
        Self { current: state.clone(), durable: state, pending: VecDeque::new(), settled: 0 }
    }

    pub fn change(&mut self, change: Change) {
        change.apply_to(&mut self.current);
        self.pending.push_back(change);
    }

    /// Names the changes made so far: what a sync that begins now will cover.
    pub fn mark(&self) -> usize {
        self.settled + self.pending.len()
    }

    /// A sync that began at `mark` succeeded: what it covers is durable.
    pub fn settle(&mut self, mark: usize) {
        while self.settled < mark {
            let change = self.pending.pop_front().expect("a mark is not ahead of the changes");
            change.apply_to(&mut self.durable);
            self.settled += 1;
        }
    }
}

impl File {
    /// A sync that began at `mark` failed: the system forgets what it could not write, and a later sync of the same
    /// file succeeds without it.
    pub fn forget(&mut self, mark: usize) {
        while self.settled < mark {
            self.pending.pop_front().expect("a mark is not ahead of the changes");
            self.settled += 1;
        }
    }
}

/// All files and folders below one folder, which is itself durable.
#[derive(Clone, Debug)]
pub struct Disk {
    pub nodes: Vec<Node>,
}

impl Disk {
    pub const ROOT: NodeId = 0;

    pub fn empty() -> Self {
        Self { nodes: vec![Node::Folder(Folder::durable(BTreeMap::new()))] }
    }

    /// The disk that a real folder shows, all of it durable.
    pub fn load(root: &Path) -> Self {
        let mut disk = Self::empty();
        disk.load_folder(Self::ROOT, root);
        disk
    }

    fn load_folder(&mut self, folder: NodeId, path: &Path) {
        let mut entries = BTreeMap::new();
        for entry in std::fs::read_dir(path).expect("the folder can be read") {
            let entry = entry.expect("the folder can be read");
            let name = entry.file_name().into_string().expect("file names are text");
            let node = if entry.path().is_dir() {
                let node = self.new_folder();
                self.load_folder(node, &entry.path());
                node
            } else {
                self.nodes.push(Node::File(File::durable(
                    std::fs::read(entry.path()).expect("the file can be read"),
                )));
                self.nodes.len() - 1
            };
            entries.insert(name, node);
        }
        self.nodes[folder] = Node::Folder(Folder::durable(entries));
    }

    pub fn new_file(&mut self) -> NodeId {
        self.nodes.push(Node::File(File::durable(Vec::new())));
        self.nodes.len() - 1
    }

    pub fn new_folder(&mut self) -> NodeId {
        self.nodes.push(Node::Folder(Folder::durable(BTreeMap::new())));
        self.nodes.len() - 1
    }

    pub fn file(&mut self, node: NodeId) -> Result<&mut File, String> {
        match &mut self.nodes[node] {
            Node::File(file) => Ok(file),
            Node::Folder(_) => Err("a folder is used as a file".to_owned()),
        }
    }

    pub fn folder(&mut self, node: NodeId) -> Result<&mut Folder, String> {
        match &mut self.nodes[node] {
            Node::Folder(folder) => Ok(folder),
            Node::File(_) => Err("a file is used as a folder".to_owned()),
        }
    }

    /// The node that a path below a folder names now.
    pub fn find(&self, start: NodeId, path: &Path) -> Option<NodeId> {
        path.iter().try_fold(start, |node, name| match &self.nodes[node] {
            Node::Folder(folder) => folder.current.get(name.to_str()?).copied(),
            Node::File(_) => None,
        })
    }

    /// Whether a power loss now could lose anything.
    pub fn has_pending(&self) -> bool {
        self.nodes.iter().any(|node| match node {
            Node::File(file) => !file.pending.is_empty(),
            Node::Folder(folder) => !folder.pending.is_empty(),
        })
    }

    /// The first path whose current content or kind differs from another disk's.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (self.listing(), other.listing());
        ours.keys().chain(theirs.keys()).find(|path| ours.get(*path) != theirs.get(*path)).cloned()
    }

    /// Every path with its current content; folders have none.
    fn listing(&self) -> BTreeMap<String, Option<&[u8]>> {
        let mut listing = BTreeMap::new();
        let mut left = vec![(String::new(), Self::ROOT)];
        while let Some((path, node)) = left.pop() {
            let content = match &self.nodes[node] {
                Node::File(file) => Some(file.current.as_slice()),
                Node::Folder(folder) => {
                    left.extend(
                        folder.current.iter().map(|(name, &child)| (format!("{path}/{name}"), child)),
                    );
                    None
                }
            };
            listing.insert(path, content);
        }
        listing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_written_before_it_began() {
        let mut file = File::durable(b"old".to_vec());
        file.change(FileChange::Write { offset: 3, data: b"er".to_vec() });
        let mark = file.mark();
        file.change(FileChange::Write { offset: 6, data: b"!".to_vec() });
        file.settle(mark);
        assert_eq!(file.durable, b"older");
        assert_eq!(file.current, b"older\0!");
        assert_eq!(file.pending.len(), 1);
    }

    #[test]
    fn a_failed_sync_forgets_for_good() {
        let mut file = File::durable(Vec::new());
        file.change(FileChange::Write { offset: 0, data: b"lost".to_vec() });
        file.forget(file.mark());
        file.change(FileChange::Write { offset: 4, data: b"kept".to_vec() });
        file.settle(file.mark());
        assert_eq!(file.durable, b"\0\0\0\0kept");
    }
}
