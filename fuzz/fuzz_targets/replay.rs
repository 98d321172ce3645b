#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    muse_fuzz::replay::TARGET.run(data);
});
