#!/usr/bin/env bash
# Fuzzing, of all targets or of those named: each begins with its corpus and goes on for FUZZ_SECONDS (default 2), and in a run of a minute or more six times
# as long if strangers reach it, before anybody has signed in or shown a key. Needs cargo-fuzz and a nightly
# compiler. Without them, and before a run of a minute or more, the corpora run as tests on the stable compiler; without them the fuzzing is skipped.
# What a run finds stays under the target folder for the next one. `--minimise` fuzzes nothing: it puts what adds coverage into fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

minimise=
if [[ ${1:-} == --minimise ]]; then
    minimise=yes
    shift
fi
seconds=${FUZZ_SECONDS:-2}
target=$(target_dir)/fuzz
export CARGO_TARGET_DIR=$target LLVM_PROFILE_FILE=/dev/null
# As in fuzz/.cargo/config.toml, which neither cargo-fuzz nor a caller with RUSTFLAGS reads.
export RUSTFLAGS="${RUSTFLAGS:-} -Cinstrument-coverage --cfg=count_steps"
cd fuzz
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
    tail -n 40 "$log"
    exit 1
}

corpora() {
    RUST_TEST_THREADS=1 cargo test --quiet --lib --test corpora >"$log" 2>&1 || fail
    echo "corpora: $(sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$log" | awk '{ sum += $1 } END { print sum }') passed, 0 failed"
}

fuzzer() {
    cargo +nightly fuzz run --dev "$@"
}

# The time for a target.
time_of() {
    case $1 in
        handshake | token | packet | description | relay_* | rp_* | web_link)
            if ((seconds < 60)); then echo "$seconds"; else echo $((STRANGERS * seconds)); fi
            ;;
        *) echo "$seconds" ;;
    esac
}

# The corpus is only read; what is new goes to the first folder.
run() {
    mkdir -p "$target/found/$1"
    fuzzer "$1" "$target/found/$1" "corpus/$1" -- -max_len=4096 -timeout=60 -max_total_time="$(time_of "$1")"
}

# Inputs with names of their own are kept for what they once broke; the others are those that cover most, the smallest first.
minimise() {
    local new kept
    new=$(mktemp -d)
    mkdir -p "$target/found/$1" "corpus/$1"
    fuzzer "$1" -- -max_len=4096 -set_cover_merge=1 "$new" "corpus/$1" "$target/found/$1"
    find "corpus/$1" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
    kept=$(find "corpus/$1" -type f | wc -l)
    find "$new" -type f -printf '%s %p\n' | sort -n | head -n $((INPUTS_MAX - kept)) | awk "(bytes += \$1) <= BYTES_MAX" BYTES_MAX=$BYTES_MAX | cut -d' ' -f2 | xargs -r cp -t "corpus/$1"
    rm -r "$new"
}

# How many times as long a target runs that needs no authentication.
STRANGERS=6
# As in fuzz/tests/corpora.rs.
INPUTS_MAX=150
# Of what is found for one target, so that all of them stay below 2 MB.
BYTES_MAX=70000
if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    corpora
    skip "there is no cargo-fuzz or no nightly compiler (cargo install cargo-fuzz --locked; rustup toolchain install nightly): only the corpora ran"
fi
[[ $minimise ]] || ((seconds < 60)) || corpora
cargo +nightly fuzz build --dev >"$log" 2>&1 || fail
passed=0 failed=0
names=("$@")
((${#names[@]} > 0)) || mapfile -t names < <(cargo +nightly fuzz list)
for name in "${names[@]}"; do
    if [[ $minimise ]]; then
        minimise "$name" >"$log" 2>&1 || fail
        echo "$name: $(find "corpus/$name" -type f | wc -l) inputs"
    elif run "$name" >"$log" 2>&1; then
        echo "$name: $(sed -nE 's/^Done ([0-9]+) runs.*/\1 runs/p' "$log")"
        passed=$((passed + 1))
    else
        tail -n 40 "$log"
        echo "fuzz target $name failed"
        failed=$((failed + 1))
    fi
done
[[ $minimise ]] || echo "fuzz: $passed passed, $failed failed"
((failed == 0))
