//! The target `rule` of targets.rs, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tiller_fuzz::rule(data));
