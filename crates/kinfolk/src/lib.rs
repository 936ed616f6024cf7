//! The parts of the binary that other crates reuse: the generator behind `kinfolk generate`, and the readers of edge
//! files. Not the command line.

#![warn(clippy::too_many_lines, unreachable_pub)]

pub mod generate;
pub mod input;
