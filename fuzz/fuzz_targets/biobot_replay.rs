#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    muse_fuzz::biobot_replay::TARGET.run(data);
});
