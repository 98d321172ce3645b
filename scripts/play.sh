#!/usr/bin/env bash
# What `make play` does: builds the page and the program, and runs everything on this machine until Ctrl-C.
#
# Without a terminal (CI, the gate) it is a check that ends by itself: everything is started on free ports, the page is fetched if it has been
# built, two bots are matched and play, and everything is ended again. MUSE names a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${PORT:-8080}
target() {
    cargo metadata --no-deps --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/'
}

if [[ -t 1 && -z ${MUSE_PLAY_CHECK:-} ]]; then
    scripts/build-page.sh
    echo "building the program (the first time takes some minutes)"
    cargo build --release -p muse-cli
    exec "$(target)/release/muse" up --port "$port" "$@"
fi

muse=${MUSE:-$(target)/release/muse}
if [[ -z ${MUSE:-} ]]; then
    echo "building the program"
    cargo build --release --quiet -p muse-cli
fi
data=$(mktemp -d)
log=$data/log
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
echo "two bots: matched by the master, in a match for a few seconds"
timeout 60 "$muse" bots --count 2 --master "$url" --mode versus --players 2 --seconds 20 | tee "$data/bots"
grep -q '^all 2 play$' "$data/bots" || { echo "the bots did not play"; cat "$log"; exit 1; }
