#!/usr/bin/env bash
# Builds the crates that run in a browser for wasm32-unknown-unknown: with rustup's target where it is installed, else with
# Debian's packages for the web (their compiler has no precompiled library for us, so it builds that too).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

target=wasm32-unknown-unknown
# Profile and folder are those of scripts/build-web.sh, so that what the pages are made of is compiled once.
build=(build --quiet --profile web --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/web"
    -p muse-wire -p muse-schema -p muse-netem -p muse-transport -p muse-rp -p muse-relay -p muse-relay-v1 -p muse-netcode -p muse-lagcomp -p muse-lockstep
    -p muse-master-client -p muse-net --features "muse-net/lagcomp muse-net/lockstep muse-net/master muse-net/relay" -p muse-biobot)

has_target() {
    local library
    library=$(rustc --print target-libdir --target "$target" 2>/dev/null) && [ -d "$library" ]
}

if ! has_target && have rustup; then
    timeout 120 rustup --quiet target add "$target" >/dev/null 2>&1 || true
fi
if has_target; then
    cargo "${build[@]}"
    echo "built for $target with $(rustc --version)"
    exit 0
fi

need /usr/bin/wasm-ld-19 rustc-web cargo-web rust-web-src lld-19
need /usr/bin/cargo cargo-web
export PATH=/usr/bin:$PATH
export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=/usr/bin/wasm-ld-19
/usr/bin/cargo "${build[@]}" -Zbuild-std=std,panic_abort
echo "built for $target with Debian's $(/usr/bin/rustc --version)"
