//! What must hold for any input whatever, one function a parser. Used by the fuzz targets and, on the committed corpus
//! and its mutations, by the tests of the `kinfolk` crate. It does not make up inputs.

#![allow(clippy::unwrap_used, reason = "a panic is how a property says no")]

mod frames;
mod lines;
mod pairs;
mod sealed;
mod session;

pub use frames::resp_frames;
pub use lines::import_lines;
pub use pairs::check_body;
pub use sealed::{list_cursor, token};
pub use session::resp_session;

/// A property, by the name of its target and of the folder of its corpus.
pub type Property = (&'static str, fn(&[u8]));

/// All of them.
pub const ALL: [Property; 6] = [
    ("resp_frames", resp_frames),
    ("resp_session", resp_session),
    ("list_cursor", list_cursor),
    ("token", token),
    ("import_lines", import_lines),
    ("check_body", check_body),
];
