//! The parser of the Redis protocol: what is found does not depend on how the bytes arrive, and nothing is larger
//! than allowed. What commands do is not here.

use kinfolk_server::resp::frame::{FrameLimits, Malformed, Parsed, Span, parse};

/// So small that short inputs reach every limit.
const TIGHT: FrameLimits = FrameLimits {
    frame_bytes_max: 64,
    bulk_bytes_max: 16,
    arguments_max: 4,
    inline_bytes_max: 24,
    is_authenticated: true,
};

/// In how many places an input is cut at most.
const CUTS_MAX: usize = 64;

/// Reads the input as a client's pipeline, under each of the limits.
pub fn resp_frames(input: &[u8]) {
    for limits in [FrameLimits::DEFAULT, FrameLimits::UNAUTHENTICATED, TIGHT] {
        let mut at = 0;
        while let Ok(Parsed::Command { end }) = one(input, at, &limits) {
            assert!(at < end && end <= input.len(), "a command from {at} to {end} of {}", input.len());
            at = end;
        }
    }
}

/// How many commands an input has that want an answer, and whether something follows that is none.
pub fn commands(input: &[u8], limits: &FrameLimits) -> (Vec<Vec<Vec<u8>>>, bool) {
    let (mut input, mut found, mut at) = (input.to_vec(), Vec::new(), 0);
    loop {
        let mut spans = Vec::new();
        match parse(&mut input, at, limits, &mut spans) {
            Ok(Parsed::Command { end }) => {
                let arguments: Vec<_> = spans.iter().map(|span| span.of(&input).to_vec()).collect();
                if !arguments.is_empty() {
                    found.push(arguments);
                }
                at = end;
            }
            Ok(Parsed::Incomplete { .. }) => return (found, false),
            Err(_) => return (found, true),
        }
    }
}

/// Parses one command and looks at all that may be said about it.
fn one(input: &[u8], at: usize, limits: &FrameLimits) -> Result<Parsed, Malformed> {
    let (mut unescaped, mut spans) = (input.to_vec(), Vec::new());
    let parsed = parse(&mut unescaped, at, limits, &mut spans);
    match parsed {
        Ok(Parsed::Command { end }) => {
            assert!(spans.len() <= limits.arguments_max);
            assert!(end - at <= limits.frame_bytes_max.max(limits.inline_bytes_max));
            assert!(spans.iter().map(|span| span.len()).sum::<usize>() <= end - at);
            // Nothing before or behind the command is changed.
            assert_eq!(unescaped[..at], input[..at]);
            assert_eq!(unescaped[end..], input[end..]);
            is_the_same_again(&unescaped, &spans);
        }
        Ok(Parsed::Incomplete { needed }) => {
            assert!(needed > input.len(), "{needed} bytes are already there");
            assert!(spans.is_empty());
        }
        Err(_) => assert!(spans.is_empty()),
    }
    if !matches!(parsed, Ok(Parsed::Command { .. })) {
        assert!(parsed.is_err() || unescaped == input, "what is not whole is read again, as it was");
    }
    arrives_in_parts(input, at, limits, parsed);
    parsed
}

/// Arguments that are sent as an array of bulk strings are the same arguments.
fn is_the_same_again(input: &[u8], spans: &[Span]) {
    let mut bytes = format!("*{}\r\n", spans.len()).into_bytes();
    for span in spans {
        bytes.extend_from_slice(format!("${}\r\n", span.len()).as_bytes());
        bytes.extend_from_slice(span.of(input));
        bytes.extend_from_slice(b"\r\n");
    }
    // A line has less between its words than an array, so the array may be the larger one.
    let limits =
        FrameLimits { frame_bytes_max: usize::MAX, bulk_bytes_max: usize::MAX, ..FrameLimits::DEFAULT };
    let (mut again, end) = (Vec::new(), bytes.len());
    assert_eq!(parse(&mut bytes, 0, &limits, &mut again), Ok(Parsed::Command { end }));
    assert!(again.iter().map(|span| span.of(&bytes)).eq(spans.iter().map(|span| span.of(input))));
}

/// A part of the input is read as the whole is, or waits for no more than the whole.
fn arrives_in_parts(input: &[u8], at: usize, limits: &FrameLimits, whole: Result<Parsed, Malformed>) {
    let step = (input.len() - at).div_ceil(CUTS_MAX).max(1);
    for cut in (at..input.len()).step_by(step) {
        match (parse(&mut input[..cut].to_vec(), at, limits, &mut Vec::new()), whole) {
            (Ok(Parsed::Incomplete { needed }), Ok(Parsed::Command { end })) => {
                assert!(cut < needed && needed <= end, "cut at {cut}: waits for {needed}, ends at {end}");
            }
            (Ok(Parsed::Incomplete { needed }), _) => assert!(needed > cut),
            (Err(_), Err(_)) => {}
            (part, whole) => assert_eq!(part, whole, "cut at {cut}"),
        }
    }
}
