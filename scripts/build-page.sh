#!/usr/bin/env bash
# Builds the page of the game into game/web/dist: the client as WebAssembly, then everything that is drawn. `make page`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null; then
    echo "build-page: npm is missing. Install node 20 or newer from https://nodejs.org, then run this again." >&2
    exit 1
fi
echo "building the client for the browser (the first time takes some minutes)"
scripts/build-web.sh
cd game/web
# Again only if what is to be installed has changed.
if ! cmp -s package-lock.json node_modules/.installed; then
    # Not `npm ci`: it refuses lock files that leave out what other platforms need.
    npm install --no-save --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
fi
echo "building the page"
npm run --silent build
