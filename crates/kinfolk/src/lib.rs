//! The parts of the binary that others reuse: the generated graphs of `kinfolk generate`, and how files of edges are
//! read. Not the command line.

pub mod generate;
pub mod input;
