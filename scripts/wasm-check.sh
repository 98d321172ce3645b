#!/usr/bin/env bash
# Builds the crates that run in a browser for wasm32-unknown-unknown: with rustup's target where it is installed, else with
# Debian's packages for the web (their compiler has no precompiled library for us, so it builds that too).
set -euo pipefail
cd "$(dirname "$0")/.."

crates=(-p muse-wire -p muse-schema -p muse-netem -p muse-transport -p muse-rp -p muse-relay -p muse-relay-v1 -p muse-netcode -p muse-lagcomp -p muse-lockstep
    -p muse-master-client -p muse-biobot)
target=wasm32-unknown-unknown
target_dir=${CARGO_TARGET_DIR:-target}/wasm

has_target() {
    local library
    library=$(rustc --print target-libdir --target "$target" 2>/dev/null) && [ -d "$library" ]
}

if ! has_target && command -v rustup >/dev/null; then
    timeout 120 rustup --quiet target add "$target" >/dev/null 2>&1 || true
fi
if has_target; then
    cargo build --quiet --release --target "$target" --target-dir "$target_dir" "${crates[@]}"
    echo "built for $target with $(rustc --version)"
    exit 0
fi

if ! [ -x /usr/bin/wasm-ld-19 ] || ! [ -x /usr/bin/cargo ]; then
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends rustc-web cargo-web rust-web-src lld-19 >/dev/null
fi
export PATH=/usr/bin:$PATH
export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=/usr/bin/wasm-ld-19
/usr/bin/cargo build --quiet --release -Zbuild-std=std,panic_abort --target "$target" --target-dir "$target_dir" "${crates[@]}"
echo "built for $target with Debian's $(/usr/bin/rustc --version)"
