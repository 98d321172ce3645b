#!/usr/bin/env bash
# Checks that what a game's client uses compiles for Windows. Needs rustup's target and a C compiler for it (ring has C code).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

target=x86_64-pc-windows-gnu
has_target() {
    [ -d "$(rustc --print target-libdir --target "$target")" ]
}

need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
if ! has_target && have rustup; then
    timeout 120 rustup --quiet target add "$target" >/dev/null 2>&1 || true
fi
has_target || skip "no $target for $(rustc --version) (rustup target add $target)"
cargo check --quiet -p muse-net --all-features --target "$target"
echo "muse-net compiles for $target"
