//! `kinfolk serve` as a process: started on free ports, asked over both protocols, ended by signals.

mod clients;
mod collector;
mod comments;
mod configuration;
mod hostile;
mod keys;
mod life;
mod remote;
pub mod running;
mod stream;
mod suggest;
mod tls;
mod traces;
