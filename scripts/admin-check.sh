#!/usr/bin/env bash
# Uses the operators' page in Chromium as an operator would. Usage: scripts/admin-check.sh path/to/muse [folder for screenshots].
# Needs chromium, node and npm; playwright-core comes from npm into the target folder.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need_npm
need_chromium
muse=$(realpath "$1")
shots=${2:-}
tools=$(dirname "$muse")/../tmp/playwright
if [[ ! -d $tools/node_modules/playwright-core ]]; then
    mkdir -p "$tools"
    npm install --silent --no-audit --no-fund --prefix "$tools" playwright-core@1.65.0 >/dev/null || skip "playwright-core cannot be had from npm"
fi
# Node looks for packages beside the script.
cp tests/admin/page.mjs "$tools/page.mjs"
timeout 180 node "$tools/page.mjs" "$muse" ${shots:+"$shots"}
