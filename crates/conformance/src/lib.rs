//! What every store must pass: a reference model, a suite and planted faults.
