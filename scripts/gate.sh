#!/usr/bin/env bash
# The gate that `make test` and CI run. Every step prints its name and how long it took; a step that fails does not keep the
# others from running. The last line says how many tests and steps passed and failed.
set -uo pipefail
cd "$(dirname "$0")/.."

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0
broken=()

# Runs a step and adds the tests that its output counts, or the step itself if it counts none.
step() {
    local name=$1 from=$SECONDS status=0 counts
    shift
    echo "==> $name"
    "$@" 2>&1 | tee "$log" || status=$?
    read -r -a counts <<<"$(count_tests)"
    passed=$((passed + counts[0]))
    failed=$((failed + counts[1]))
    if ((status != 0)); then
        broken+=("$name")
        ((counts[1] > 0)) || failed=$((failed + 1))
        echo "==> $name: FAILED after $((SECONDS - from)) s"
    else
        ((counts[0] > 0)) || passed=$((passed + 1))
        echo "==> $name: ok, $((SECONDS - from)) s"
    fi
}

# Sums what cargo test, nextest and the decoder say: "12 passed; 1 failed" or "12 passed, 1 failed".
count_tests() {
    grep -E '^test result:|^ *Summary |^decoder:|^rp:|^relay-(v[12]|web):|^capi[a-z-]*:|^csharp[a-z-]*:|^session[a-z-]*:|^wireshark:|^worker:|^page:|^screens:|^e2e:' "$log" | awk '
        { for (i = 2; i <= NF; i++) {
              if ($i ~ /^passed/) passed += $(i - 1)
              if ($i ~ /^failed/) failed += $(i - 1) } }
        END { print passed + 0, failed + 0 }'
}

format() {
    # Names the files that `make fmt` would change.
    cargo fmt --all -- --check -l && (cd bench/peers && cargo fmt -- --check -l) &&
        (cd bench/peers/bevy && cargo fmt -p muse-bench-bevy -p bevy-muse -p bevy-peers -- --check -l) &&
        (cd bindings/capi/header && cargo fmt -- --check -l) && (cd fuzz && cargo fmt -- --check -l)
}

# Also builds the program and the examples that later steps start.
run_tests() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --workspace --features muse-net/lockstep --no-fail-fast --status-level fail --final-status-level fail
    else
        cargo test --workspace --features muse-net/lockstep --lib --bins --tests --examples --no-fail-fast
    fi
}

decoder() {
    command -v python3 >/dev/null || install python3
    python3 tests/decoder/test_decoder.py "$(target_dir)/tmp/capture"
}

# The relay's page as a client in another language reads it.
relay_v1() {
    command -v python3 >/dev/null || install python3
    python3 tests/relay-v1/test_relay.py "$(target_dir)/debug/muse"
}

relay_v2() {
    command -v python3 >/dev/null || install python3
    python3 tests/relay-v2/test_relay.py "$(target_dir)/debug/muse"
}

# Symmetric routers and others, where this machine lets us build them.
routers() {
    if [[ $(id -u) == 0 ]] && ! command -v nft >/dev/null && command -v apt-get >/dev/null; then
        install nftables iproute2
    fi
    tests/relay-v2/nats.sh "$(target_dir)/debug/muse"
}

# Browsers at a relay, in Chromium.
relay_web() {
    scripts/relay-web-check.sh "$(target_dir)/debug/muse" "$(target_dir)/debug/examples/native"
}

# The master's OpenAPI page, asked by schemathesis.
openapi() {
    scripts/openapi-check.sh "$(target_dir)/debug/muse"
}

# The operators' page, in Chromium.
admin_page() {
    scripts/admin-check.sh "$(target_dir)/debug/muse"
}

independent_rp() {
    command -v python3 >/dev/null || install python3
    python3 tests/rp/test_rp.py "$(target_dir)/debug/muse"
}

# Reads what the capture test and the bindings' session recorded, and a match.
wireshark() {
    command -v tshark >/dev/null || DEBIAN_FRONTEND=noninteractive install tshark
    python3 tests/wireshark/test_wireshark.py "$(target_dir)/tmp/capture" "$(target_dir)/debug/muse"
}

# The npm package, in node and in Chromium, where npm is.
typescript() {
    if command -v npm >/dev/null; then
        scripts/build-typescript.sh --test
    else
        echo "npm is not installed: the package for browsers is not tried"
    fi
}

# The game itself: every screen, and two players from the first one to a lost server and back, in Chromium.
game_in_browser() {
    scripts/web-check.sh "$(target_dir)/debug/muse"
}

install() {
    apt-get -qq update && apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

target_dir() {
    cargo metadata --no-deps --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/'
}

deny() {
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny --log-level error check bans licenses sources
    else
        echo "cargo-deny is not installed: the tidy test has checked licences and sources"
    fi
}

# A function, so that bash has read all of it before it begins: the script may change while it runs.
main() {
    # The decoder must read what these tests record, not what earlier ones left.
    rm -rf "$(target_dir)/tmp/capture"
    step "format" format
    step "clippy" cargo clippy --quiet --workspace --features muse-net/lockstep --all-targets -- -D warnings
    step "tests" run_tests
    step "independent decoder" decoder
    step "independent MUSE-RP" independent_rp
    step "independent relay client" relay_v1
    step "independent relay v2 client" relay_v2
    step "players behind routers" routers
    step "OpenAPI page" openapi
    step "operators' page" admin_page
    step "bindings for C and C#" scripts/bindings.sh
    step "package for browsers" typescript
    step "wireshark" wireshark
    step "documentation tests" cargo test --quiet --workspace --features muse-net/lockstep --doc
    step "documentation" env RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --no-deps --workspace
    step "play" env MUSE="$(target_dir)/debug/muse" scripts/play.sh
    step "browsers at a relay" relay_web
    step "game in the browser" game_in_browser
    step "dependencies" deny
    step "packages" scripts/publish-check.sh
    step "wasm32" scripts/wasm-check.sh
    step "windows" scripts/windows-check.sh
    step "fuzz" scripts/fuzz-smoke.sh

    echo "gate: $SECONDS s in all"
    for name in "${broken[@]}"; do
        echo "gate: failed: $name"
    done
    echo "$passed passed, $failed failed"
    ((failed == 0))
    exit
}

main
