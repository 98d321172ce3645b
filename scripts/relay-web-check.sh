#!/usr/bin/env bash
# Browsers meet at a relay, in Chromium: tests/relay-v2/web. Usage: scripts/relay-web-check.sh path/to/muse path/to/native, the latter the example of
# muse-relay-web. Needs chromium, node, npm and a compiler for WebAssembly.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need_npm
need_chromium
muse=$(realpath "$1")
native=$(realpath "$2")
module=$(dirname "$muse")/../tmp/relay-web
scripts/build-web.sh muse-relay-web relay_web "$module"
page_packages
timeout 240 node tests/relay-v2/web/browsers.mjs "$muse" "$native" "$(realpath "$module")"
