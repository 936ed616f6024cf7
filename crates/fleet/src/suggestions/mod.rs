//! Suggestions: a walk of two steps in the request. Nothing is stored for everyone yet.

mod ports;
mod walk;
