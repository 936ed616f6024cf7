//! W3C Trace Context: the trace that a caller's request belongs to. The exporter of spans decides what to do with it.

use axum::http::{HeaderMap, HeaderName};
use tracing::Span;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The span that a request comes from, by its headers `traceparent` and `tracestate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The caller's span; never 0.
    pub span_id: u64,
    /// Whether the caller records the trace.
    pub is_sampled: bool,
    /// What vendors have added, as it came: it may be malformed.
    pub state: Option<String>,
}

/// Makes a span the child of the one that a request comes from.
pub type AdoptTrace = fn(&Span, &TraceParent);

impl TraceParent {
    /// What the headers say. A malformed parent counts as none, as the standard has it.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all(TRACE_PARENT).iter();
        let (parent, None) = (parents.next()?, parents.next()) else { return None };
        let state = headers.get_all(TRACE_STATE).iter().map(|state| state.to_str().ok());
        let state = state.collect::<Option<Vec<_>>>().filter(|states| !states.is_empty());
        let state = state.map(|states| states.join(","));
        Some(Self { state, ..parse(parent.to_str().ok()?)? })
    }
}

/// Reads `version-trace-parent-flags`. Later versions may have more behind it.
fn parse(text: &str) -> Option<TraceParent> {
    let mut fields = text.split('-');
    let mut field =
        |length: usize| fields.next().filter(|field| field.len() == length && is_lower_hex(field));
    let (version, trace, parent, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    let is_known_to_end = version == "00";
    if version == "ff" || (is_known_to_end && fields.next().is_some()) {
        return None;
    }
    let (trace_id, span_id) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(parent, 16).ok()?);
    let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 != 0;
    (trace_id != 0 && span_id != 0).then_some(TraceParent { trace_id, span_id, is_sampled, state: None })
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
    const PARENT: u64 = 0x00f0_67aa_0ba9_02b7;

    fn of(headers: &[(&str, &str)]) -> Option<TraceParent> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        TraceParent::of(&map)
    }

    fn parent(is_sampled: bool, state: Option<&str>) -> TraceParent {
        TraceParent { trace_id: TRACE, span_id: PARENT, is_sampled, state: state.map(str::to_owned) }
    }

    #[test]
    fn a_parent_is_read() {
        let read = |text: &str| of(&[("traceparent", text)]);
        let start = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        for (flags, is_sampled) in [("00", false), ("01", true), ("03", true), ("fe", false), ("ff", true)] {
            assert_eq!(read(&format!("00-{start}-{flags}")), Some(parent(is_sampled, None)), "{flags}");
        }
        for later in ["01-{}-01", "cc-{}-01", "cc-{}-01-what-the-future-brings", "01-{}-01-"] {
            assert_eq!(read(&later.replace("{}", start)), Some(parent(true, None)), "{later}");
        }
    }

    #[test]
    fn what_is_malformed_counts_as_none() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47360-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        ] {
            assert_eq!(of(&[("traceparent", text)]), None, "{text}");
        }
        let valid = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!(of(&[valid, valid]), None, "which of the two?");
        assert_eq!(of(&[("tracestate", "a=1")]), None);
    }

    #[test]
    fn the_state_comes_with_it() {
        let valid = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!(of(&[valid, ("tracestate", "a=1,b=2")]), Some(parent(true, Some("a=1,b=2"))));
        assert_eq!(
            of(&[valid, ("tracestate", "a=1"), ("tracestate", "b=2")]),
            Some(parent(true, Some("a=1,b=2")))
        );
        assert_eq!(of(&[valid, ("tracestate", "a=\u{e4}")]), Some(parent(true, None)), "not plain text");
    }
}
