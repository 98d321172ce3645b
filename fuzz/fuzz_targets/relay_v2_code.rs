#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    muse_fuzz::relay_v2_code::TARGET.run(data);
});
