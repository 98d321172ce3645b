#!/usr/bin/env bash
# What `make play` does: builds the page and the program, and runs everything on this machine until Ctrl-C.
#
# Without a terminal (CI, the gate) it is a check that ends by itself: everything is started on free ports, the page is fetched if it has been
# built, two bots are matched and play, and everything is ended again. MUSE names a program that is built already; PLAY_SECONDS and PLAY_BOTS
# make it a soak: more bots, matched again and again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

port=${PORT:-8080}

if [[ -t 1 && -z ${MUSE_PLAY_CHECK:-} ]]; then
    scripts/build-page.sh
    echo "building the program (the first time takes some minutes)"
    cargo build --release -p muse-cli
    exec "$(target_dir)/release/muse" up --port "$port" "$@"
fi

muse=${MUSE:-$(target_dir)/release/muse}
if [[ -z ${MUSE:-} ]]; then
    echo "building the program"
    cargo build --release --quiet -p muse-cli
fi
data=$(mktemp -d)
log=$data/log
# Read at once, perhaps before the program is started.
: >"$log"
page=(--no-page)
[[ -f game/web/dist/index.html ]] && page=(--page game/web/dist)
"$muse" up --port 0 --relay-port 0 --first-port 25900 --data "$data/muse" "${page[@]}" >"$log" 2>&1 &
up=$!
trap 'kill "$up" 2>/dev/null; wait "$up" 2>/dev/null; rm -rf "$data"' EXIT

# It says where it is.
url=
for _ in $(seq 150); do
    url=$(sed -nE 's/^(Biobot is at|master  ) (http[^ ]*)$/\2/p' "$log")
    [[ -n $url ]] && break
    kill -0 "$up" 2>/dev/null || { cat "$log"; exit 1; }
    sleep 0.1
done
[[ -n $url ]] || { echo "muse up did not start"; cat "$log"; exit 1; }
cat "$log"
fetch() {
    python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "$1"
}
fetch "${url}health" >/dev/null && echo "the master answers"
if [[ ${page[0]} == --page ]]; then
    fetch "$url" | grep -q '<script' && echo "the page is served"
else
    echo "the page is not built (make page): played without it"
fi
seconds=${PLAY_SECONDS:-20}
bots=${PLAY_BOTS:-2}
echo "$bots bots: matched by the master two by two, for $seconds seconds"
timeout $((seconds + 40)) "$muse" bots --count "$bots" --master "$url" --mode versus --players 2 --seconds "$seconds" | tee "$data/bots"
grep -q "^all $bots play\$" "$data/bots" || { echo "the bots did not play"; cat "$log"; exit 1; }
kill -0 "$up" || { echo "muse up has ended"; cat "$log"; exit 1; }
! grep panicked "$log"
