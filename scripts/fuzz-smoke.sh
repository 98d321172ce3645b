#!/usr/bin/env bash
# Builds every fuzz target and runs each for FUZZ_SECONDS (default 5). Needs cargo-fuzz and a nightly compiler. Without them the bodies of the
# targets run over pseudo-random bytes, as an ordinary test, and the fuzzing itself is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh
cd fuzz

if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    cargo test --quiet --lib
    skip "there is no cargo-fuzz or no nightly compiler (cargo install cargo-fuzz; rustup toolchain install nightly): noise is not fuzzing"
fi
seconds=${FUZZ_SECONDS:-5}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../target}/fuzz
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cargo +nightly fuzz build >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
passed=0 failed=0
for target in $(cargo +nightly fuzz list); do
    if cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=4096 >"$log" 2>&1; then
        echo "$target: $(sed -nE 's/^Done ([0-9]+) runs.*/\1 runs/p' "$log")"
        passed=$((passed + 1))
    else
        tail -n 40 "$log"
        echo "fuzz target $target failed"
        failed=$((failed + 1))
    fi
done
echo "fuzz: $passed passed, $failed failed"
((failed == 0))
