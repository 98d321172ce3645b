#!/usr/bin/env bash
# Plays the game in Chromium: builds the page, then walks through every screen, tries the Worker over WebTransport and WebSocket, compares matches with those of the
# native simulation, and lets two players go from the first screen to a lost server and back, over HTTPS. Usage: scripts/web-check.sh [path/to/muse].
# Pictures of every screen are kept in the target folder. Needs node and npm; a missing browser is installed where apt-get may.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/tools.sh

need_npm
need_chromium
need openssl openssl
target=$(target_dir)
find_features
muse=${1:-$target/release/muse}
[[ -n ${1:-} ]] || cargo build --release --quiet -p muse-cli
scripts/build-page.sh
cargo build --quiet --workspace --examples "${features[@]}"
pictures=$target/tmp/pictures
rm -rf "$pictures"
cd game/web

# One after the other: each of them would have the machine for itself. What fails keeps no other from running.
failed=0
run() {
    local limit=$1
    shift
    timeout --kill-after=10 "$limit" "$@" || failed=1
}
run 120 npm run --silent test
run 300 node tests/worker.mjs "$target/debug/examples"
run 540 env PICTURES="$pictures/page" node tests/page.mjs
run 300 env PICTURES="$pictures" node tests/screens.mjs
run 420 env PICTURES="$pictures/match" node tests/e2e.mjs "$muse"
echo "pictures in $pictures"
exit "$failed"
