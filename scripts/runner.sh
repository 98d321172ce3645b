# Runs steps one after the other and counts what they report; scripts/gate.sh sources it. A step that fails does not keep the others from running.
# shellcheck shell=bash
#
#   begin              before the first step
#   step NAME COMMAND  a step: it passes with exit code 0, is skipped with 77 and fails with any other
#   beside FUNCTION    runs the steps of a function in the background: those that mostly wait, while others need the processors
#   together           waits for these, prints what they said and counts them
#   finish             the summary, whose last line is `N passed, N failed, N skipped`; false if something failed or nothing ran
#
# ONLY is a regular expression: steps whose name does not match it are left out.

begin() {
    passed=0 failed=0 skipped=0
    failures=() skips=() times=()
    work=$(mktemp -d) log=$work/log lane=
    trap 'rm -rf "$work"' EXIT
}

step() {
    local name=$1 from=$SECONDS cpu status=0 p f s spent
    shift
    [[ $name =~ ${ONLY:-} ]] || return 0
    echo "==> $name"
    count_cpu
    cpu=$cpu_seconds
    "$@" 2>&1 | tee "$log" || status=$?
    read -r p f s <<<"$(count_tests <"$log")"
    # A step that counts nothing is one test itself.
    case $status in
        0) ((p + f + s > 0)) || p=1 ;;
        77) ((s > 0)) || s=1 ;;
        *) ((f > 0)) || f=1 ;;
    esac
    ((passed += p, failed += f, skipped += s)) || true
    ((f == 0)) || failures+=("$name")
    ((s == 0)) || skips+=("$name$(sed -nE 's/^skipped(: .*)/\1/p' "$log" | tail -n 1)")
    count_cpu
    spent="$((SECONDS - from)) s, $((cpu_seconds - cpu)) s of CPU"
    times+=("$spent: $name")
    echo "$name: $p passed, $f failed, $s skipped ($spent)"
}

beside() {
    mkdir "$work/beside"
    (
        passed=0 failed=0 skipped=0
        failures=() skips=() times=()
        work=$work/beside log=$work/log
        # What waits most of the time should not be late as well, where that may be asked for.
        renice -n -5 "$BASHPID" >/dev/null 2>&1 || true
        "$1"
        local line
        {
            echo "counts $passed $failed $skipped"
            for line in "${times[@]}"; do echo "time $line"; done
            for line in "${skips[@]}"; do echo "skip $line"; done
            for line in "${failures[@]}"; do echo "failure $line"; done
        } >"$work/counts"
    ) >"$work/said" 2>&1 </dev/null &
    lane=$!
}

together() {
    local kind line p=0 f=1 s=0
    [[ -n $lane ]] || return 0
    wait "$lane"
    lane=
    cat "$work/said"
    [[ -f $work/beside/counts ]] || failures+=("the steps beside others did not end")
    while read -r kind line; do
        case $kind in
            counts) read -r p f s <<<"$line" ;;
            time) times+=("$line") ;;
            skip) skips+=("$line") ;;
            failure) failures+=("$line") ;;
        esac
    done < <(cat "$work/beside/counts" 2>/dev/null)
    ((passed += p, failed += f, skipped += s)) || true
    rm -rf "$work/beside"
}

# Puts the time that steps spent on processors so far into cpu_seconds: unlike that on the clock, it is much the same on a busy machine.
count_cpu() {
    # Not by a pipe, for `times` speaks of the shell that it runs in. The second line is that of its children.
    times >"$work/times"
    cpu_seconds=$(awk -F '[ms ]+' 'NR == 2 { print int(60 * ($1 + $3) + $2 + $4) }' "$work/times")
}

# Sums what tests report, and prints passed, failed and skipped. Whole lines, so that a text about tests is not taken for their result. What
# nextest calls skipped is left to another step, and not counted.
count_tests() {
    awk '
        # cargo test
        /^test result: (ok|FAILED)\. [0-9]+ passed; [0-9]+ failed; / { passed += $4; failed += $6 }
        # cargo nextest
        /^ *Summary \[ *[0-9.]+s\] [0-9\/]+ tests? run: / {
            passed += before("passed")
            failed += before("failed") + before("timed out") + before("exec failed")
        }
        # our own
        /^[a-z][a-z0-9-]*: [0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { passed += $2; failed += $4; skipped += $6 }
        function before(word) { return match($0, "[0-9]+ " word) ? substr($0, RSTART, RLENGTH) + 0 : 0 }
        END { print passed + 0, failed + 0, skipped + 0 }'
}

finish() {
    local line
    together
    printf '%s\n' "${times[@]}" | sort -rn | sed 's/^/gate: /'
    echo "gate: $SECONDS s in all"
    [[ -z ${ONLY:-} ]] || echo "gate: only steps that match '$ONLY'"
    for line in "${skips[@]}"; do
        echo "gate: skipped: $line"
    done
    for line in "${failures[@]}"; do
        echo "gate: failed: $line"
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    ((failed == 0 && ${#times[@]} > 0))
}
