#!/usr/bin/env bash
# Compiles the browser's client (game/web/client) to WebAssembly and writes the module to game/web/src/wasm, which the page imports.
# Another crate of the workspace with `scripts/build-web.sh PACKAGE NAME DIRECTORY`.
# With rustup's target where it can be had, else with Debian's packages for the web. Says what to install when something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
package=${1:-muse-biobot-web}
name=${2:-biobot}
output=${3:-game/web/src/wasm}
# Their own directories: another compiler and other settings than the workspace's.
target_dir=${CARGO_TARGET_DIR:-$PWD/target}/web
bytes_max=$((2 * 1000 * 1000))

fail() {
    echo "build-web: $*" >&2
    exit 1
}

has_target() {
    local library
    library=$(rustc --print target-libdir --target "$target" 2>/dev/null) && [ -d "$library" ]
}

has_debian() {
    [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && [ -x /usr/bin/wasm-ld-19 ] && [ -d /usr/lib/rustlib/src ]
}

command -v cargo >/dev/null || fail "cargo is missing. Install Rust from https://rustup.rs, then run this again."

if ! has_target && command -v rustup >/dev/null; then
    timeout 300 rustup --quiet target add "$target" >/dev/null 2>&1 || true
fi
build=(build --quiet --profile web -p "$package" --target "$target" --target-dir "$target_dir")
if has_target; then
    # A wrapper that caches native builds may not know this target's flags; it is left as it is configured.
    cargo "${build[@]}"
else
    if ! has_debian && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get -qq update >/dev/null 2>&1 || true
        apt-get -qq install -y --no-install-recommends rustc-web cargo-web rust-web-src lld-19 >/dev/null 2>&1 || true
    fi
    # 77 tells the gate that its step is skipped.
    has_debian || {
        echo "build-web: no compiler for $target. Run one of
  rustup target add $target
  sudo apt-get install rustc-web cargo-web rust-web-src lld-19
and then this again." >&2
        exit 77
    }
    PATH=/usr/bin:$PATH RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=/usr/bin/wasm-ld-19 \
        /usr/bin/cargo "${build[@]}" -Zbuild-std=std,panic_abort
fi

# The generator must have the version of the wasm-bindgen crate that the client was compiled with.
version_of() {
    awk -v name="$2" '$0 == "name = \"" name "\"" { getline; gsub(/version = |"/, ""); print; exit }' "$1"
}
wanted=$(version_of Cargo.lock wasm-bindgen)
pinned=$(sed -n 's/^wasm-bindgen-cli-support = "=\(.*\)"$/\1/p' game/web/bindgen/Cargo.toml)
[ "$wanted" = "$pinned" ] || fail "wasm-bindgen is $wanted in Cargo.lock and $pinned in game/web/bindgen/Cargo.toml; set the latter to =$wanted"
cargo build --quiet --release --manifest-path game/web/bindgen/Cargo.toml --target-dir "$target_dir/bindgen"

rm -rf "$output"
mkdir -p "$output"
"$target_dir/bindgen/release/biobot-bindgen" "$target_dir/$target/web/${package//-/_}.wasm" "$output" "$name"

# Smaller still where the tool is installed; never needed.
if command -v wasm-opt >/dev/null; then
    wasm-opt -Oz --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals \
        --enable-reference-types --enable-multivalue "$output/${name}_bg.wasm" -o "$output/${name}_bg.wasm.small" &&
        mv "$output/${name}_bg.wasm.small" "$output/${name}_bg.wasm"
fi

bytes=$(wc -c <"$output/${name}_bg.wasm")
compressed=$(gzip -9 -c "$output/${name}_bg.wasm" | wc -c)
echo "build-web: $output/${name}_bg.wasm: $bytes bytes, $compressed compressed (gzip)"
((compressed < bytes_max)) || fail "compressed it is larger than $bytes_max bytes"
