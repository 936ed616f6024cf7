//! The part of the binary that others reuse: the generated graphs of `kinfolk generate`. Not the command line.

pub mod generate;
