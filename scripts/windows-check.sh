#!/usr/bin/env bash
# Checks that what a game's client uses compiles for Windows. Needs rustup's target and a C compiler for it (ring has C code); where
# they cannot be had it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-pc-windows-gnu
compiler=x86_64-w64-mingw32-gcc

if ! command -v "$compiler" >/dev/null && command -v apt-get >/dev/null; then
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends gcc-mingw-w64-x86-64; } >/dev/null 2>&1 || true
fi
if command -v rustup >/dev/null && ! [ -d "$(rustc --print target-libdir --target "$target")" ]; then
    timeout 120 rustup --quiet target add "$target" >/dev/null 2>&1 || true
fi
if ! command -v "$compiler" >/dev/null || ! [ -d "$(rustc --print target-libdir --target "$target")" ]; then
    echo "skipped: no $target for $(rustc --version), or no $compiler"
    exit 0
fi
cargo check --quiet -p muse-net --all-features --target "$target"
echo "muse-net compiles for $target"
