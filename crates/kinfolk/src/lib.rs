//! The parts of the binary that other crates reuse: the generator behind `kinfolk generate`, and the readers of edge
//! files. Not the command line.

pub mod generate;
pub mod input;
