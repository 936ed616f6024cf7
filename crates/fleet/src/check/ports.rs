//! The port of checks: one layer after another.

use kinfolk_core::graph::{CheckStore, Edge};
use kinfolk_core::{EdgeKind, Frontier, Result};

use super::layers::{CheckLayer, Checks};
use crate::Fleet;

impl CheckStore for Fleet {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        let topology = self.shared.topology();
        let asked = edges.iter().map(|&edge| self.asked(&topology, edge, at_least)).collect();
        self.layers.contains(Checks { asked, topology, kind, at_least: at_least.clone() }).await
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        let topology = self.shared.topology();
        let asked = self.asked(&topology, edge, at_least);
        self.layers.answers_now(topology.epoch, kind, &asked)
    }
}
