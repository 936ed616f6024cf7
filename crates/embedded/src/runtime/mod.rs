//! What the threads of an open store share: its clock and health, signals, and how long things take.

pub(crate) mod clock;
pub(crate) mod folder;
pub(crate) mod health;
pub(crate) mod layers;
pub(crate) mod pulse;
pub(crate) mod signal;
