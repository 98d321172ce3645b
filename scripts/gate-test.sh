#!/usr/bin/env bash
# The gate's own test: steps that pass, fail and are skipped, what is counted of what they print, and that a script without its tools says so.
# Takes a second or two.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/tools.sh

# What the gate that runs this was told.
unset ONLY
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good=0 bad=0 left=0

check() {
    if [[ $2 == "$3" ]]; then
        good=$((good + 1))
    else
        bad=$((bad + 1))
        printf 'gate-test: %s\n  expected: %s\n  found:    %s\n' "$1" "$3" "$2"
    fi
}

# Runs a gate with the steps that stand in the input, and checks its last line and its exit code.
gate() {
    local name=$1 summary=$2 code=$3 status=0
    { echo 'set -uo pipefail; . scripts/tools.sh; . scripts/runner.sh; begin' && cat && echo finish; } >"$work/gate"
    bash "$work/gate" >"$work/output" 2>&1 || status=$?
    check "$name: the last line" "$(tail -n 1 "$work/output")" "$summary"
    check "$name: the exit code" "$status" "$code"
}

# The steps of a gate say what they print.
says() {
    printf '%s\n' "$@" >"$work/said"
}

gate "a step that passes" "1 passed, 0 failed, 0 skipped" 0 <<<'step one true'
gate "a step that fails" "0 passed, 1 failed, 0 skipped" 1 <<<'step one false'
check "it is named" "$(grep -c '^gate: failed: one$' "$work/output")" 1
gate "a step that is skipped" "0 passed, 0 failed, 1 skipped" 0 <<<'step one skip "there is no tool"'
check "it is named with its reason" "$(grep -c '^gate: skipped: one: there is no tool$' "$work/output")" 1
check "it says so at its end" "$(grep -cE '^one: 0 passed, 0 failed, 1 skipped \([0-9]+ s, [0-9]+ s of CPU\)$' "$work/output")" 1
gate "a script within a step that is skipped" "0 passed, 0 failed, 1 skipped" 0 <<<"step one bash -c 'set -e; bash -c \"exit 77\"; echo not reached'"
gate "one of each" "1 passed, 1 failed, 1 skipped" 1 <<<'step one true; step two false; step three skip "no"'
gate "no step at all" "0 passed, 0 failed, 0 skipped" 1 <<<''
ONLY='^t' gate "some steps" "1 passed, 0 failed, 0 skipped" 0 <<<'step one false; step two true'

gate "steps beside others" "3 passed, 1 failed, 1 skipped" 1 <<'END'
waiting() { step two true; step three false; step four skip "no"; }
beside waiting
step one true
together
step five true
END
check "those that failed beside others are named" "$(grep -c '^gate: failed: three$' "$work/output")" 1
check "those that were skipped beside others are named" "$(grep -c '^gate: skipped: four: no$' "$work/output")" 1
check "all have their time" "$(grep -cE '^gate: [0-9]+ s, [0-9]+ s of CPU: (one|two|three|four|five)$' "$work/output")" 5
gate "steps beside others that nobody waits for" "2 passed, 0 failed, 0 skipped" 0 <<<'waiting() { step two true; }; beside waiting; step one true'
gate "steps beside others that die" "1 passed, 1 failed, 0 skipped" 1 <<<'waiting() { kill -9 $BASHPID; }; beside waiting; step one true'
ONLY='^t' gate "some steps beside others" "1 passed, 0 failed, 0 skipped" 0 <<<'waiting() { step one false; step two true; }; beside waiting'

says "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s" \
    "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
gate "cargo test" "15 passed, 2 failed, 0 skipped" 1 <<<"step one sh -c 'cat $work/said; exit 101'"
says "     Summary [  62.310s] 135 tests run: 133 passed (2 slow, 1 flaky), 1 failed, 1 timed out, 7 skipped" \
    "     Summary [   0.310s] 1 test run: 1 passed, 0 skipped"
gate "nextest" "134 passed, 2 failed, 0 skipped" 1 <<<"step one sh -c 'cat $work/said; exit 100'"
says "decoder: 12 passed, 0 failed" "session-typescript: 1 passed, 0 failed, 2 skipped"
gate "our own" "13 passed, 0 failed, 2 skipped" 0 <<<"step one cat $work/said"
says "/// test result: ok. 5 passed; 0 failed;" "    12 passed, 1 failed" "It ends with decoder: 12 passed, 1 failed" "decoder: 12 passed, 1 failed, as it should" \
    "two words: 1 passed, 1 failed, 0 skipped" "one: 1 passed, 1 failed, 0 skipped (3 s, 5 s of CPU)" "Summary of 3 tests: 3 passed, 1 failed"
gate "texts about tests" "1 passed, 0 failed, 0 skipped" 0 <<<"step one cat $work/said"
says "decoder: 12 passed, 3 failed"
gate "failures that the exit code hides" "12 passed, 3 failed, 0 skipped" 1 <<<"step one cat $work/said"
says "capi: 5 passed, 0 failed"
gate "a step that is skipped half-way" "5 passed, 0 failed, 1 skipped" 0 <<<"step one sh -c 'cat $work/said; exit 77'"
gate "a step that dies after its tests" "5 passed, 1 failed, 0 skipped" 1 <<<"step one sh -c 'cat $work/said; exit 3'"

# A machine without tools and without apt-get.
mkdir "$work/bin"
for tool in bash cat cmp dirname env git grep id mkdir mktemp python3 realpath rm sed seq sort tail timeout tr cargo rustc; do
    ! path=$(command -v "$tool") || ln -s "$path" "$work/bin/$tool"
done
without_tools() {
    local status=0
    PATH=$work/bin CHROMIUM='' "$@" >"$work/output" 2>&1 || status=$?
    check "$1 without its tools: the exit code" "$status" 77
    check "$1 without its tools: the reason" "$(grep -c '^skipped: ' "$work/output")" 1
}
without_tools scripts/admin-check.sh muse
without_tools scripts/bindings.sh
without_tools scripts/build-typescript.sh --test
NATS_SERVER=no-such-server without_tools scripts/cluster-check.sh
without_tools scripts/proxy-check.sh
without_tools scripts/relay-web-check.sh muse native
without_tools scripts/web-check.sh muse
without_tools scripts/windows-check.sh
without_tools tests/relay-v2/nats.sh muse

# Which packages files belong to.
touched() {
    printf '%s\n' "$@" | python3 scripts/workspace.py touched | grep -v '^dependent' | tr '\n' ' '
}
check "a file of a package" "$(touched crates/wire/src/lib.rs)" "changed muse-wire "
check "a test that lies elsewhere" "$(touched tests/master/several.rs)" "changed muse-cli "
check "a package within another" "$(touched crates/schema/derive/src/lib.rs)" "changed muse-schema-derive "
check "files of none, and of all" "$(touched docs/master.md Cargo.lock)" "other docs/master.md all Cargo.lock "
check "those that depend on a package" "$(echo crates/wire/src/lib.rs | python3 scripts/workspace.py touched | grep -cx 'dependent muse-transport')" 1
check "features without some" "$(python3 scripts/workspace.py features --without agones muse-master)" "muse-master/nats,muse-master/postgres"

for script in scripts/*.sh tests/relay-v2/nats.sh .ci/run; do
    bash -n "$script"
    check "$script is a script" "$?" 0
done
if have shellcheck; then
    shellcheck --external-sources --severity=warning scripts/*.sh tests/relay-v2/nats.sh .ci/run
    check "shellcheck" "$?" 0
else
    echo "skipped: there is no shellcheck (apt-get install shellcheck)"
    left=1
fi

echo "gate-test: $good passed, $bad failed, $left skipped"
((bad == 0))
