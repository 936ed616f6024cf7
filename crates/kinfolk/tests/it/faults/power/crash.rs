//! Draws a state that a disk could be in after a power loss, and writes it into a real folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::super::random::Random;
use super::disk::{ApplyTo, Disk, File, FileChange, Folder, Node, NodeId};

/// How the un-synced changes fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// All are lost.
    AllLost,
    /// All arrived, as after a kill of the process alone.
    AllKept,
    /// Each file and folder fares in its own way.
    Mixed,
}

impl Style {
    pub fn choose(random: &mut Random) -> Self {
        match random.below(20) {
            0 => Self::AllKept,
            1..=5 => Self::AllLost,
            _ => Self::Mixed,
        }
    }
}

const SECTOR: usize = 512;

/// Writes a possible state of the disk to `target`; returns what was done to each file and folder with un-synced
/// changes, for the report of a violation.
pub fn materialise(disk: &Disk, style: Style, random: &mut Random, target: &Path) -> Vec<String> {
    let mut drawing = Drawing { disk, style, random, fates: Vec::new() };
    drawing.folder(Disk::ROOT, target);
    drawing.fates
}

struct Drawing<'a> {
    disk: &'a Disk,
    style: Style,
    random: &'a mut Random,
    fates: Vec<String>,
}

impl Drawing<'_> {
    fn folder(&mut self, node: NodeId, target: &Path) {
        fs::create_dir_all(target).expect("a folder can be made");
        let Node::Folder(folder) = &self.disk.nodes[node] else { panic!("a folder is expected") };
        for (name, child) in self.entries(folder, target) {
            let path = target.join(name);
            match &self.disk.nodes[child] {
                Node::Folder(_) => self.folder(child, &path),
                Node::File(file) => {
                    let content = self.content(file, &path);
                    fs::write(&path, content).expect("a file can be written");
                }
            }
        }
    }

    /// The names that made it: some first part of the pending changes.
    fn entries(&mut self, folder: &Folder, target: &Path) -> BTreeMap<String, NodeId> {
        let pending = folder.pending.len();
        let kept = match self.style {
            Style::AllLost => 0,
            Style::AllKept => pending,
            Style::Mixed => self.random.below(pending + 1),
        };
        if pending > 0 {
            self.fates.push(format!("{}: {kept} of {pending} entry changes", target.display()));
        }
        let mut entries = folder.durable.clone();
        for change in folder.pending.iter().take(kept) {
            change.apply_to(&mut entries);
        }
        entries
    }

    fn content(&mut self, file: &File, target: &Path) -> Vec<u8> {
        let pending = file.pending.len();
        if pending == 0 {
            return file.durable.clone();
        }
        let fate = match self.style {
            Style::AllLost => 0,
            Style::AllKept => 1,
            Style::Mixed => self.random.below(8),
        };
        let mut content = file.durable.clone();
        let told = match fate {
            0 => "all changes lost".to_owned(),
            1 => {
                content.clone_from(&file.current);
                "all changes kept".to_owned()
            }
            2..=4 => self.keep_first(file, &mut content),
            _ => self.keep_some(file, &mut content),
        };
        let grown = if self.style == Style::Mixed { self.grow(file, &mut content) } else { "" };
        self.fates.push(format!("{}: {told}{grown}, {} bytes", target.display(), content.len()));
        content
    }

    /// The first changes, the last of them torn.
    fn keep_first(&mut self, file: &File, content: &mut Vec<u8>) -> String {
        let kept = 1 + self.random.below(file.pending.len());
        for (index, change) in file.pending.iter().take(kept).enumerate() {
            if index + 1 == kept {
                self.tear(change, content);
            } else {
                change.apply_to(content);
            }
        }
        format!("the first {kept} of {} changes, the last torn", file.pending.len())
    }

    /// Any of the changes, as a disk that reorders would leave them, some torn.
    fn keep_some(&mut self, file: &File, content: &mut Vec<u8>) -> String {
        let mut kept = Vec::new();
        for (index, change) in file.pending.iter().enumerate() {
            match self.random.below(8) {
                0..=2 => {}
                3..=4 => {
                    self.tear(change, content);
                    kept.push(format!("{index} torn"));
                }
                _ => {
                    change.apply_to(content);
                    kept.push(index.to_string());
                }
            }
        }
        format!("changes [{}] of {}", kept.join(" "), file.pending.len())
    }

    /// A part of a write: up to some byte, up to some sector, or some of its sectors.
    fn tear(&mut self, change: &FileChange, content: &mut Vec<u8>) {
        let FileChange::Write { offset, data } = change else {
            return change.apply_to(content);
        };
        let part = |start: usize, end: usize| FileChange::Write {
            offset: offset + start,
            data: data[start..end].to_vec(),
        };
        // Where the sectors of the disk begin within the data.
        let first = (SECTOR - offset % SECTOR).min(data.len());
        let edges: Vec<usize> =
            std::iter::once(0).chain((first..data.len()).step_by(SECTOR)).chain([data.len()]).collect();
        match self.random.below(3) {
            0 => part(0, self.random.below(data.len() + 1)).apply_to(content),
            1 => part(0, edges[self.random.below(edges.len())]).apply_to(content),
            _ => {
                for pair in edges.windows(2) {
                    if self.random.once_in(2) {
                        part(pair[0], pair[1]).apply_to(content);
                    }
                }
            }
        }
    }

    /// The length may have become durable without the data: zeros are read there.
    fn grow(&mut self, file: &File, content: &mut Vec<u8>) -> &'static str {
        let longest = file.current.len();
        if content.len() >= longest || self.random.once_in(2) {
            return "";
        }
        let length = if self.random.once_in(2) {
            longest
        } else {
            content.len() + self.random.below(longest - content.len() + 1)
        };
        content.resize(length, 0);
        ", grown with zeros"
    }
}
