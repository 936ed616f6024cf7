//! Looks for input that breaks a property of `check_body`. The property itself is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kinfolk_fuzz::check_body(input));
