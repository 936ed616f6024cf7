//! Looks for input that breaks a property of `resp_session`. The property itself is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kinfolk_fuzz::resp_session(input));
