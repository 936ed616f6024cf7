//! Pages of lists. A page that is not the last one has the cursor of the next.

use kinfolk_core::graph::OverlapPage;
use serde::{Deserialize, Serialize};

use crate::Member;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<T>,
    /// The cursor of the next page; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<E, T: From<E>> From<kinfolk_core::Page<E>> for Page<T> {
    fn from(kinfolk_core::Page { items, next }: kinfolk_core::Page<E>) -> Self {
        Self { items: items.into_iter().map(T::from).collect(), next }
    }
}

/// A page of the users who are in all of some sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CountedPage {
    /// How many there are in total.
    pub count: u64,
    /// Some of them, by id.
    pub items: Vec<Member>,
    /// The cursor of the next page; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next: Option<String>,
}

impl From<OverlapPage> for CountedPage {
    fn from(OverlapPage { count, items, next }: OverlapPage) -> Self {
        Self { count, items: items.into_iter().map(|id| Member { id: id.into() }).collect(), next }
    }
}
