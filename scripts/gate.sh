#!/usr/bin/env bash
# The gate, in three tiers: `scripts/gate.sh quick|test|nightly`, or `make` with the same word.
#
#   quick    formatting, clippy and tests of what was changed against main; seconds to minutes
#   test     everything that must hold before a change lands; CI runs the same
#   nightly  what takes hours: many seeds, fuzzing, a soak, faults again and again, a real Kubernetes, the start pages from scratch
#
# Steps whose tools are missing, and cannot be installed here, are skipped and counted as such. scripts/runner.sh says how steps report.
# ONLY='fuzz|wasm' runs the steps whose names match.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/tools.sh
. scripts/runner.sh

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

format() {
    # Names the files that `make fmt` would change.
    cargo fmt --all -- --check -l && (cd bench/peers && cargo fmt -- --check -l) &&
        (cd bench/peers/bevy && cargo fmt -p muse-bench-bevy -p bevy-muse -p bevy-peers -- --check -l) &&
        (cd bindings/bevy/window && cargo fmt -- --check -l) && (cd bindings/capi/header && cargo fmt -- --check -l) && (cd fuzz && cargo fmt -- --check -l)
}

# What a clean machine compiles: the program and the library without optional features.
default_features() {
    cargo clippy --quiet -p muse-cli -- -D warnings && cargo clippy --quiet -p muse-net -- -D warnings
}

# Also builds the program and the examples that later steps start. What needs more than a compiler is left to the steps below.
run_tests() {
    # The decoder must read what these tests record, not what earlier ones left.
    rm -rf "$target/tmp/capture"
    if ! cargo nextest --version >/dev/null 2>&1; then
        cargo test --workspace "${features[@]}" --lib --bins --tests --examples --no-fail-fast -- "${without_servers[@]}"
        return
    fi
    local others="not ($with_servers | $with_chaos)"
    ! have_protoc || others+=" & not binary_id(muse-cli::agones)"
    nextest "$others"
}

nextest() {
    cargo nextest run --workspace "${features[@]}" --no-fail-fast --status-level fail --final-status-level fail -E "$1"
}

# Agones and Kubernetes, played by the tests.
agones() {
    have_protoc || skip "there is no protoc (apt-get install protobuf-compiler libprotobuf-dev): the feature agones was not compiled"
    cargo test --quiet --workspace "${features[@]}" --test agones
}

decoder() {
    need python3 python3
    python3 tests/decoder/test_decoder.py "$target/tmp/capture"
}

independent_rp() {
    need python3 python3
    python3 tests/rp/test_rp.py "$target/debug/muse"
}

# The relay's pages as a client in another language reads them.
independent_relay() {
    need python3 python3
    python3 "tests/relay-$1/test_relay.py" "$target/debug/muse"
}

# Reads what the capture test and the bindings' session recorded, and a match.
wireshark() {
    need tshark tshark
    python3 tests/wireshark/test_wireshark.py "$target/tmp/capture" "$target/debug/muse"
}

deny() {
    cargo deny --version >/dev/null 2>&1 || skip "there is no cargo-deny (cargo install cargo-deny); the style test has checked licences and sources"
    cargo deny --log-level error check "$@"
}

# The start pages whose tools are here; the others are skipped.
newcomer() {
    local pages=(rust messages game rollback friend master bevy operator) skipped=()
    get gcc gcc libc6-dev && pages+=(c) || skipped+=(c)
    get mcs mono-mcs mono-runtime && pages+=(unity) || skipped+=(unity)
    have npm && get_chromium && pages+=(browser) || skipped+=(browser)
    ((${#skipped[@]} == 0)) || echo "newcomer-tools: 0 passed, 0 failed, ${#skipped[@]} skipped"
    python3 tests/newcomer/test_newcomer.py "${pages[@]}"
}

# What is handed out, tried as somebody does who has downloaded it.
distribution() {
    scripts/dist.sh && scripts/dist-check.sh
}

# All attacks at their full length, on the program as operators build it.
hostile_release() {
    cargo build --quiet --release -p muse-cli --features tools && scripts/hostile.sh "$target/release/muse"
}

# Runs the simulations of a filter with so many seeds.
seeds() {
    cargo nextest --version >/dev/null 2>&1 || skip "there is no cargo-nextest (cargo install cargo-nextest)"
    MUSE_SEEDS=$1 nextest "$2"
}

# The masters, PostgreSQL and NATS again and again: their tests kill processes at moments that differ from run to run.
faults() {
    local round
    for round in 1 2 3 4 5; do
        echo "round $round"
        scripts/cluster-check.sh || return
    done
}

# What was changed since the branch left main, committed or not.
quick() {
    local base=${QUICK_BASE:-main} kind name path all="" touched=() changed=() others=()
    git rev-parse --quiet --verify "$base" >/dev/null || base=origin/main
    base=$(git merge-base HEAD "$base" 2>/dev/null || git rev-parse HEAD)
    echo "changes since $(git log -1 --format='%h %s' "$base")"
    while read -r kind name; do
        case $kind in
            changed) changed+=(-p "$name") touched+=(-p "$name") ;;
            dependent) touched+=(-p "$name") ;;
            all) all=$name ;;
            other) others+=("$name") ;;
        esac
    done < <({ git diff --name-only "$base" && git ls-files --others --exclude-standard; } | sort -u | python3 scripts/workspace.py touched)
    if [[ -n $all ]]; then
        echo "$all changes every package"
        changed=(--workspace) touched=(--workspace)
        find_features
    else
        find_features "${touched[@]}"
    fi

    [[ ${others[*]} != *scripts/* ]] || step "the gate itself" scripts/gate-test.sh
    step "format" format
    step "style" cargo test --quiet -p muse-tidy
    if ((${#changed[@]} > 0)); then
        step "clippy" cargo clippy --quiet "${touched[@]}" --all-targets "${features[@]}" -- -D warnings
        step "tests" quick_tests "${changed[@]}"
    fi
    # Pages are read by the style test.
    local left=()
    for path in "${others[@]}"; do
        [[ $path == scripts/* || $path == *.md || $path == Makefile ]] || left+=("$path")
    done
    ((${#left[@]} == 0)) || step "what the other tiers try" skip "${left[*]}"
}

quick_tests() {
    if ! cargo nextest --version >/dev/null 2>&1; then
        cargo test "$@" "${features[@]}" --no-fail-fast -- "${without_servers[@]}"
        return
    fi
    # Crates without a test of this kind are no mistake.
    cargo nextest run "$@" "${features[@]}" --no-fail-fast --no-tests=pass --status-level fail --final-status-level fail \
        -E "not ($with_servers | $with_chaos)"
}

# Steps that wait for real time and other programs, and leave the processors to others.
waiting_steps() {
    step "PostgreSQL and NATS" scripts/cluster-check.sh
    step "Agones" agones
    step "independent MUSE-RP" independent_rp
    step "independent relay client" independent_relay v1
    step "independent relay v2 client" independent_relay v2
    step "players behind routers" tests/relay-v2/nats.sh "$target/debug/muse"
    step "OpenAPI page" scripts/openapi-check.sh "$target/debug/muse"
    step "operators' page" scripts/admin-check.sh "$target/debug/muse"
}

all_that_must_hold() {
    step "the gate itself" scripts/gate-test.sh
    step "format" format
    step "clippy" cargo clippy --quiet --workspace --all-targets "${features[@]}" -- -D warnings
    step "tests" run_tests
    step "masters under faults, backups" scripts/chaos-check.sh
    beside waiting_steps
    step "independent decoder" decoder
    step "documentation tests" cargo test --quiet --workspace "${features[@]}" --doc --no-fail-fast
    step "documentation" env RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --no-deps --workspace "${features[@]}"
    step "default features" default_features
    step "dependencies" deny bans licenses sources
    step "packages" scripts/publish-check.sh
    step "windows" scripts/windows-check.sh
    step "fuzz" scripts/fuzz-smoke.sh
    together
    step "bindings for C and C#" scripts/bindings.sh
    step "package for browsers" scripts/build-typescript.sh --test
    step "wireshark" wireshark
    step "browsers at a relay" scripts/relay-web-check.sh "$target/debug/muse" "$target/debug/examples/native"
    step "game in the browser" scripts/web-check.sh "$target/debug/muse"
    step "wasm32" scripts/wasm-check.sh
    step "hostile clients" scripts/hostile.sh "$target/debug/muse" --quick
    step "play" env MUSE="$target/debug/muse" scripts/play.sh
}

# Numbers of seeds are about ten times those of `make test`.
nightly() {
    step "seeds of the transport" seeds 20000 'binary(=promises)'
    step "seeds of rollback" seeds 3000 'package(muse-lockstep) & binary(=simulation)'
    step "seeds of the grid" seeds 10000 'package(muse-netcode) & binary(=grid)'
    step "seeds of sessions" seeds 480 'binary(=session)'
    step "seeds of snapshots" seeds 1000 'binary(=snapshots) | binary(=coder_round_trip)'
    step "seeds of interest and rewind" seeds 500 'binary(=interest) | binary(=rewind)'
    step "seeds of relays" seeds 1500 'package(muse-relay) & binary(/simulation/)'
    step "seeds of meetings" seeds 30 'package(muse-lab) & binary(=meet)'
    step "seeds of MUSE-RP" seeds 20000 'package(muse-rp) & (binary(=simulation) | binary(=promise) | binary(=crossing))'
    step "seeds of the game" seeds 100 'binary(=bots) | binary(=mover) | binary(=states)'
    step "simulated weeks" seeds 30 'binary(=week)'
    step "faults of PostgreSQL and NATS" faults
    step "masters under faults" env MUSE_SEEDS=10 MUSE_CHAOS_SECONDS=360 scripts/chaos-check.sh
    step "soak" env PLAY_SECONDS="${SOAK_SECONDS:-1800}" PLAY_BOTS=8 MUSE="$target/debug/muse" scripts/play.sh
    step "fuzz" env FUZZ_SECONDS="${FUZZ_SECONDS:-600}" scripts/fuzz-smoke.sh
    step "hostile clients at full length" hostile_release
    step "proxy" scripts/proxy-check.sh
    step "distribution" distribution
    step "distribution for containers" scripts/image-check.sh
    step "distribution built again" scripts/dist-again.sh
    step "HTTPS behind proxies" scripts/https-check.sh "$target/debug/muse" haproxy caddy
    step "Bevy in a window" scripts/bevy-window.sh
    step "packages as users get them" scripts/publish-check.sh --build
    step "advisories" deny advisories
    step "start pages" newcomer
    step "Kubernetes" scripts/kubernetes-check.sh
}

# A function, so that bash has read all of it before it begins: the script may change while it runs.
main() {
    target=$(target_dir)
    begin
    case ${1:-test} in
        quick)
            quick
            ;;
        test | nightly)
            get protoc protobuf-compiler && get /usr/include/google/protobuf/descriptor.proto libprotobuf-dev || true
            find_features
            if [[ ${1:-test} == test ]]; then all_that_must_hold; else nightly; fi
            ;;
        *)
            echo "usage: scripts/gate.sh quick|test|nightly" >&2
            exit 2
            ;;
    esac
    finish
    exit
}

main "$@"
