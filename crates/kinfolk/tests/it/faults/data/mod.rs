//! One workload and one model of all kinds of data: edges, posts, comments, what moderators do, and purges, written through a real
//! server. After a fault the log must be a prefix of what was submitted that holds everything acknowledged, and all that can be
//! read must be its effect.

pub mod check;
mod compare;
pub mod history;
mod model;
pub mod operation;
mod reader;
mod self_test;
mod server;
pub mod workload;

pub use server::{End, Server};
