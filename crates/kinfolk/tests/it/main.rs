//! What the binary does, seen from outside: one test binary, a module a subject.

mod apply;
mod bulk;
mod formats;
mod malformed;
mod queries;
mod real_data;
mod resume;
mod stores;
mod support;
