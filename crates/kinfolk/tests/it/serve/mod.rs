//! `kinfolk serve` as a process: started on free ports, asked over both protocols, ended by signals.

mod clients;
mod collector;
mod comments;
mod configuration;
mod credentials;
mod hostile;
mod keys;
mod life;
mod remote;
mod resp_traces;
pub mod running;
mod stopping;
mod stream;
mod suggest;
mod tls;
mod traces;
mod whole;
