//! `kinfolk serve` as a process: started on free ports, asked over both protocols, ended by signals.

mod clients;
mod collector;
mod comments;
mod configuration;
mod credentials;
mod failing_threads;
mod folders;
mod hostile;
mod keys;
mod keyspace;
mod lifecycle;
pub mod remote;
mod resp_traces;
mod retention;
pub mod running;
mod stopping;
mod stream;
mod suggest;
mod tls;
mod traces;
mod uploads;
mod whole;
