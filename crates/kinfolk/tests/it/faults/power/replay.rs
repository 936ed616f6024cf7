//! Turns recorded calls into changes of the modelled disk. A call that changes files in a way that the model does
//! not know is an error: a fault test that misses writes would prove nothing.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::disk::{Disk, EntryChange, FileChange, Node, NodeId};
use super::trace::{Call, Event, Trace};

/// An open file; descriptors that were duplicated share one.
struct Open {
    node: NodeId,
    position: usize,
    append: bool,
    /// Opened with `O_SYNC` or `O_DSYNC`.
    synced: bool,
    /// Syncs of it succeed and make nothing durable.
    left_out: bool,
}

/// A path below a folder of the disk.
struct Place {
    start: NodeId,
    path: PathBuf,
}

/// A disk, and the files that one process at a time has open.
pub struct Replay {
    pub disk: Disk,
    root: PathBuf,
    opens: Vec<Open>,
    descriptors: HashMap<i64, usize>,
    /// Of calls that have begun: the open file, and what a sync covers.
    begun: HashMap<usize, (usize, usize)>,
    /// Files and folders whose syncs are left out, and how many were.
    left_out: Option<PathBuf>,
    left_out_count: usize,
}

impl Replay {
    /// `root` is where the disk's root was when the calls were recorded.
    pub fn new(disk: Disk, root: &Path) -> Self {
        Self {
            disk,
            root: root.to_owned(),
            opens: Vec::new(),
            descriptors: HashMap::new(),
            begun: HashMap::new(),
            left_out: None,
            left_out_count: 0,
        }
    }

    /// From now on, what is at or below this path is not synced, as if the program had forgotten it: to see that this is found.
    pub fn leave_out_syncs(&mut self, path: &str) {
        self.left_out = Some(path.into());
    }

    /// How many syncs were left out; none if all are made.
    pub fn left_out(&self) -> Option<usize> {
        self.left_out.as_ref().map(|_| self.left_out_count)
    }

    /// Another process begins, with nothing open.
    pub fn new_process(&mut self) {
        self.descriptors.clear();
        self.begun.clear();
    }

    /// Whether a call writes to something that is not on the disk, such as a connection.
    pub fn is_elsewhere(&self, call: &Call) -> bool {
        let writes = matches!(call.name.as_str(), "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2");
        writes && !call.integer(0).is_some_and(|descriptor| self.descriptors.contains_key(&descriptor))
    }

    pub fn step(&mut self, trace: &Trace, event: Event) -> Result<(), String> {
        let (index, outcome) = match event {
            Event::Begin(index) => (index, self.begin(index, &trace.calls[index])),
            Event::End(index) => (index, self.end(index, &trace.calls[index])),
            Event::Exit(_) => return Ok(()),
        };
        outcome.map_err(|problem| {
            let call = &trace.calls[index];
            let words: Vec<&str> = (0..call.arguments.len()).map(|at| call.word(at)).collect();
            format!("call {index}, {}({}): {problem}", call.name, words.join(", "))
        })
    }

    /// What takes effect when a call begins: a descriptor is free for reuse from then on, and a sync covers what was
    /// written until then.
    fn begin(&mut self, index: usize, call: &Call) -> Result<(), String> {
        let Some(open) = call.integer(0).and_then(|descriptor| self.descriptors.get(&descriptor)).copied()
        else {
            return Ok(());
        };
        match call.name.as_str() {
            "close" => {
                self.descriptors.remove(&call.integer(0).expect("found above"));
            }
            "fsync" | "fdatasync" => {
                let mark = match &self.disk.nodes[self.opens[open].node] {
                    Node::File(file) => file.mark(),
                    Node::Folder(folder) => folder.mark(),
                };
                self.begun.insert(index, (open, mark));
            }
            "read" | "readv" | "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "lseek"
            | "ftruncate" | "fallocate" => {
                self.begun.insert(index, (open, 0));
            }
            "copy_file_range" | "sendfile" | "splice" | "sync_file_range" => {
                return Err("not modelled".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, index: usize, call: &Call) -> Result<(), String> {
        if let "fsync" | "fdatasync" = call.name.as_str() {
            return self.sync(index, call);
        }
        if !call.succeeded() {
            return Ok(());
        }
        let result = call.result.expect("a call that succeeded has a result");
        match call.name.as_str() {
            "open" => self.open(self.place(call, None, 0), call.word(1), result),
            "openat" => self.open(self.place(call, Some(0), 1), call.word(2), result),
            "dup" | "dup2" | "dup3" => self.duplicate(call, result),
            "fcntl" if call.word(1).starts_with("F_DUPFD") => self.duplicate(call, result),
            "rename" => self.rename(self.place(call, None, 0), self.place(call, None, 1)),
            "renameat" | "renameat2" => {
                self.rename(self.place(call, Some(0), 1), self.place(call, Some(2), 3))
            }
            "unlink" | "rmdir" => self.remove(self.place(call, None, 0)),
            "unlinkat" => self.remove(self.place(call, Some(0), 1)),
            "mkdir" => self.make_folder(self.place(call, None, 0)),
            "mkdirat" => self.make_folder(self.place(call, Some(0), 1)),
            "copy_file_range" | "splice" => self.require_foreign(call, &[0, 2]),
            "sendfile" => self.require_foreign(call, &[0, 1]),
            "mmap" if call.word(2).contains("PROT_WRITE") && call.word(3).contains("MAP_SHARED") => {
                self.require_foreign(call, &[4])
            }
            "truncate" | "creat" | "link" | "linkat" | "symlink" | "symlinkat" => {
                self.require_foreign_paths(call)
            }
            "sync" | "syncfs" | "io_uring_setup" => Err("not modelled".to_owned()),
            _ => match self.begun.remove(&index) {
                Some((open, _)) => self.access(call, open, usize::try_from(result).unwrap_or(0)),
                None => Ok(()),
            },
        }
    }

    /// Calls on an open file, which was found when they began.
    fn access(&mut self, call: &Call, open: usize, result: usize) -> Result<(), String> {
        let offset =
            |index| call.integer(index).and_then(|at| usize::try_from(at).ok()).ok_or("no offset".to_owned());
        match call.name.as_str() {
            "read" | "readv" => self.opens[open].position += result,
            "lseek" => self.opens[open].position = result,
            "write" | "writev" => self.write(open, None, &call.bytes(1)[..result])?,
            "pwrite64" | "pwritev" | "pwritev2" => {
                self.write(open, Some(offset(3)?), &call.bytes(1)[..result])?;
            }
            "ftruncate" => {
                let length = offset(1)?;
                self.disk.file(self.opens[open].node)?.change(FileChange::Resize { length });
            }
            "fallocate" => {
                let end = offset(2)? + offset(3)?;
                let file = self.disk.file(self.opens[open].node)?;
                match call.word(1) {
                    "0" if end > file.current.len() => file.change(FileChange::Resize { length: end }),
                    "0" | "FALLOC_FL_KEEP_SIZE" => {}
                    _ => return Err("not modelled".to_owned()),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, open: usize, at: Option<usize>, data: &[u8]) -> Result<(), String> {
        let Open { node, position, append, synced, .. } = self.opens[open];
        let file = self.disk.file(node)?;
        let offset = if append { file.current.len() } else { at.unwrap_or(position) };
        file.change(FileChange::Write { offset, data: data.to_vec() });
        if synced {
            file.settle(file.mark());
        }
        if at.is_none() {
            self.opens[open].position = offset + data.len();
        }
        Ok(())
    }

    fn sync(&mut self, index: usize, call: &Call) -> Result<(), String> {
        let Some((open, mark)) = self.begun.remove(&index) else { return Ok(()) };
        if self.opens[open].left_out {
            self.left_out_count += 1;
            return Ok(());
        }
        match &mut self.disk.nodes[self.opens[open].node] {
            Node::File(file) if call.succeeded() => file.settle(mark),
            Node::File(file) => file.forget(mark),
            Node::Folder(folder) if call.succeeded() => folder.settle(mark),
            Node::Folder(_) => {}
        }
        Ok(())
    }

    fn open(&mut self, place: Option<Place>, flags: &str, descriptor: i64) -> Result<(), String> {
        self.descriptors.remove(&descriptor);
        let flags: Vec<&str> = flags.split('|').collect();
        let Some(place) = place else { return Ok(()) };
        if flags.contains(&"O_TMPFILE") {
            return Err("not modelled".to_owned());
        }
        let node = match self.disk.find(place.start, &place.path) {
            Some(node) => node,
            None if flags.contains(&"O_CREAT") => {
                let node = self.disk.new_file();
                let (parent, name) = self.parent_and_name(&place)?;
                self.disk.folder(parent)?.change(EntryChange::Add { name, node });
                node
            }
            None => return Err(format!("{} was opened and is not on the disk", place.path.display())),
        };
        if flags.contains(&"O_TRUNC") && !self.disk.file(node)?.current.is_empty() {
            self.disk.file(node)?.change(FileChange::Resize { length: 0 });
        }
        let append = flags.contains(&"O_APPEND");
        let synced = flags.contains(&"O_SYNC") || flags.contains(&"O_DSYNC");
        let left_out = self.left_out.as_ref().is_some_and(|path| place.path.starts_with(path));
        self.opens.push(Open { node, position: 0, append, synced, left_out });
        self.descriptors.insert(descriptor, self.opens.len() - 1);
        Ok(())
    }

    fn duplicate(&mut self, call: &Call, descriptor: i64) -> Result<(), String> {
        let original = call.integer(0).ok_or("no descriptor")?;
        match self.descriptors.get(&original).copied() {
            Some(open) => self.descriptors.insert(descriptor, open),
            None => self.descriptors.remove(&descriptor),
        };
        Ok(())
    }

    fn rename(&mut self, from: Option<Place>, to: Option<Place>) -> Result<(), String> {
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (from, to),
            (None, None) => return Ok(()),
            _ => return Err("a rename across the edge of the disk is not modelled".to_owned()),
        };
        let (parent, from) = self.parent_and_name(&from)?;
        let (other_parent, to) = self.parent_and_name(&to)?;
        if parent == other_parent {
            self.disk.folder(parent)?.change(EntryChange::Rename { from, to });
            return Ok(());
        }
        // Each folder's part is durable with that folder: in between the file may be in both, or in none.
        let node = self.disk.find(parent, Path::new(&from)).ok_or("a renamed entry exists")?;
        self.disk.folder(other_parent)?.change(EntryChange::Add { name: to, node });
        self.disk.folder(parent)?.change(EntryChange::Remove { name: from });
        Ok(())
    }

    fn remove(&mut self, place: Option<Place>) -> Result<(), String> {
        let Some(place) = place else { return Ok(()) };
        let (parent, name) = self.parent_and_name(&place)?;
        self.disk.folder(parent)?.change(EntryChange::Remove { name });
        Ok(())
    }

    fn make_folder(&mut self, place: Option<Place>) -> Result<(), String> {
        let Some(place) = place else { return Ok(()) };
        let (parent, name) = self.parent_and_name(&place)?;
        let node = self.disk.new_folder();
        self.disk.folder(parent)?.change(EntryChange::Add { name, node });
        Ok(())
    }

    /// Where on the disk a path leads, which may be relative to the open folder of another argument; none if it is
    /// elsewhere, as the folder that the program runs in is.
    fn place(&self, call: &Call, folder_at: Option<usize>, path_at: usize) -> Option<Place> {
        let path = Path::new(std::str::from_utf8(call.bytes(path_at)).ok()?);
        let (start, path) = if path.is_absolute() {
            (Disk::ROOT, path.strip_prefix(&self.root).ok()?)
        } else {
            let open = self.descriptors.get(&call.integer(folder_at?)?)?;
            (self.opens[*open].node, path)
        };
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        assert!(plain, "a path with dots is not modelled: {}", path.display());
        Some(Place { start, path: path.to_owned() })
    }

    fn parent_and_name(&self, place: &Place) -> Result<(NodeId, String), String> {
        let unknown = || format!("the folder of {} is not on the disk", place.path.display());
        let parent = place.path.parent().and_then(|parent| self.disk.find(place.start, parent));
        let name = place.path.file_name().and_then(|name| name.to_str());
        parent.zip(name).map(|(parent, name)| (parent, name.to_owned())).ok_or_else(unknown)
    }

    fn require_foreign(&self, call: &Call, descriptors: &[usize]) -> Result<(), String> {
        let ours = |&index: &usize| {
            call.integer(index).is_some_and(|descriptor| self.descriptors.contains_key(&descriptor))
        };
        if descriptors.iter().any(ours) { Err("not modelled".to_owned()) } else { Ok(()) }
    }

    fn require_foreign_paths(&self, call: &Call) -> Result<(), String> {
        let ours = (0..call.arguments.len()).any(|index| self.place(call, Some(0), index).is_some());
        if ours { Err("not modelled".to_owned()) } else { Ok(()) }
    }
}
