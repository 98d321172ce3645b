#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    muse_fuzz::netcode_inputs::TARGET.run(data);
});
