//! Makes `include/muse.h` of the sources of `muse-capi`, or with `--check` says whether the committed one is fresh.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a config");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in SOURCES {
        builder = builder.with_src(folder.join("src").join(file));
    }
    let mut fresh = Vec::new();
    builder
        .generate()
        .expect("cbindgen reads the sources")
        .write(&mut fresh);
    let path = folder.join("include/muse.h");
    if std::env::args().any(|word| word == "--check") {
        if std::fs::read(&path).unwrap_or_default() == fresh {
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "bindings/capi/include/muse.h is stale: cargo run --manifest-path bindings/capi/header/Cargo.toml"
        );
        return ExitCode::FAILURE;
    }
    std::fs::write(&path, &fresh).expect("the header can be written");
    ExitCode::SUCCESS
}

/// In the order in which the header shows them.
const SOURCES: [&str; 9] = [
    "status.rs",
    "context.rs",
    "config.rs",
    "event.rs",
    "endpoint.rs",
    "stats.rs",
    "token.rs",
    "clock.rs",
    "interpolation.rs",
];
