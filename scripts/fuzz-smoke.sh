#!/usr/bin/env bash
# Builds every fuzz target and runs each for FUZZ_SECONDS (default 5). Needs cargo-fuzz and a nightly compiler; without
# them the bodies of the targets are run over pseudo-random bytes, as an ordinary test.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    echo "cargo-fuzz or the nightly compiler is missing (cargo install cargo-fuzz): noise instead of fuzzing"
    exec cargo test --quiet --lib
fi
seconds=${FUZZ_SECONDS:-5}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../target}/fuzz
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cargo +nightly fuzz build >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
for target in $(cargo +nightly fuzz list); do
    if ! cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=4096 >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz target $target failed"
        exit 1
    fi
    echo "$target: $(sed -nE 's/^Done ([0-9]+) runs.*/\1 runs/p' "$log")"
done
