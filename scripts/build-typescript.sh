#!/usr/bin/env bash
# Builds the npm package of bindings/typescript: the transport in WebAssembly, and JavaScript with types beside it, in dist/. With --test it also plays the
# session that every binding plays, in node and (where there is one) in Chromium, and compares the result with that of Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

package=bindings/typescript
if [[ ${1:-} == --test ]]; then
    # What drives the browser is that of the sample game's page, and so is the compiler then.
    need_npm
    page_packages
fi
have npm || {
    echo "build-typescript: npm is missing; install node from https://nodejs.org" >&2
    exit 1
}
scripts/build-web.sh muse-typescript muse "$package/src/wasm"
tsc=$PWD/game/web/node_modules/.bin/tsc
if ! [[ -x $tsc ]]; then
    tsc=$PWD/$package/node_modules/.bin/tsc
    [[ -x $tsc ]] || (cd "$package" && npm install --no-save --no-audit --no-fund --loglevel=error)
fi
(cd "$package" && rm -rf dist && "$tsc" && mkdir -p dist/wasm && cp src/wasm/muse* dist/wasm/)
echo "build-typescript: $package/dist"
[[ ${1:-} == --test ]] || exit 0

target=$(target_dir)
out=$target/bindings
mkdir -p "$out"
find_features
cargo build --quiet --workspace "${features[@]}" --example session_server --example session
mkfifo "$out/web-input.$$"
"$target/debug/examples/session_server" <"$out/web-input.$$" >"$out/web-server.txt" &
server=$!
exec 9>"$out/web-input.$$"
rm "$out/web-input.$$"
until read -r _ address key web <"$out/web-server.txt"; do
    kill -0 $server
    sleep 0.05
done
passed=0 failed=0 skipped=0

# Runs a client and compares what it prints with what the one in Rust printed.
compare() {
    local name=$1
    shift
    if "$@" >"$out/session.$name.txt" && diff "$out/session.rust-web.txt" "$out/session.$name.txt"; then
        passed=$((passed + 1))
    else
        echo "build-typescript: $name failed"
        failed=$((failed + 1))
    fi
}

"$target/debug/examples/session" play "$address" "$key" >"$out/session.rust-web.txt"
flags=()
node -e 'process.exit(typeof WebSocket === "undefined" ? 1 : 0)' || flags=(--experimental-websocket)
compare node node "${flags[@]}" $package/tests/node.mjs "$web" "$key"
if get_chromium; then
    compare webtransport node $package/tests/browser.mjs "$web" "$key" webtransport
    compare websocket node $package/tests/browser.mjs "$web" "$key" websocket
else
    echo "skipped: there is no Chromium (apt-get install chromium)"
    skipped=2
fi
exec 9>&-
wait $server || failed=$((failed + 1))
echo "session-typescript: $passed passed, $failed failed, $skipped skipped"
((failed == 0))
