//! The target `line` of targets.rs, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tiller_fuzz::line(data));
