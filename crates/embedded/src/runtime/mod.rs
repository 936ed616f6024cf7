//! What the threads of an open store share: its clock and health, signals, and how long things take.

pub mod clock;
pub mod folder;
pub mod health;
pub mod layers;
pub mod pulse;
pub mod signal;
