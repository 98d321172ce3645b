#!/usr/bin/env bash
# Uses the operators' page in Chromium as an operator would. Usage: scripts/admin-check.sh path/to/muse [folder for screenshots].
# Needs chromium, node and npm; playwright-core comes from npm into the target folder.
set -euo pipefail
cd "$(dirname "$0")/.."

muse=$(realpath "$1")
shots=${2:-}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $chromium ]] || ! command -v npm >/dev/null; then
    echo "chromium or npm is not installed: the operators' page is not tried"
    exit 0
fi
tools=$(dirname "$muse")/../tmp/playwright
if [[ ! -d $tools/node_modules/playwright-core ]]; then
    mkdir -p "$tools"
    if ! npm install --silent --no-audit --no-fund --prefix "$tools" playwright-core@1.65.0 >/dev/null; then
        echo "playwright-core cannot be had: the operators' page is not tried"
        exit 0
    fi
fi
# Node looks for packages beside the script.
cp tests/admin/page.mjs "$tools/page.mjs"
CHROMIUM=$chromium timeout 180 node "$tools/page.mjs" "$muse" ${shots:+"$shots"}
