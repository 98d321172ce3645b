#!/usr/bin/env bash
# Browsers meet at a relay, in Chromium: tests/relay-v2/web. Usage: scripts/relay-web-check.sh path/to/muse path/to/native, the latter the example of
# muse-relay-web. Needs chromium, node, npm and a compiler for WebAssembly; says so and succeeds where the first three are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

muse=$(realpath "$1")
native=$(realpath "$2")
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $chromium ]] || ! command -v npm >/dev/null; then
    echo "chromium or npm is not installed: browsers at a relay are not tried"
    exit 0
fi
module=$(dirname "$muse")/../tmp/relay-web
scripts/build-web.sh muse-relay-web relay_web "$module"
# The packages of the game's page, as scripts/build-page.sh installs them.
if ! cmp -s game/web/package-lock.json game/web/node_modules/.installed; then
    (cd game/web && npm install --no-save --no-audit --no-fund --loglevel=error)
    cp game/web/package-lock.json game/web/node_modules/.installed
fi
CHROMIUM=$chromium timeout 240 node tests/relay-v2/web/browsers.mjs "$muse" "$native" "$(realpath "$module")"
