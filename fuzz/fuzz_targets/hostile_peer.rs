#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    muse_fuzz::hostile_peer::TARGET.run(data);
});
