//! The plan of one write.

/// A write that was planned: its result for the caller, and its event, if it changes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned<R, E> {
    /// The result, once the event is durable.
    pub result: R,
    /// The event; `None` if nothing changes.
    pub event: Option<E>,
}

impl<R, E> Planned<R, E> {
    pub(crate) fn change(result: R, event: E) -> Self {
        Self { result, event: Some(event) }
    }

    pub(crate) fn no_change(result: R) -> Self {
        Self { result, event: None }
    }
}
