#!/usr/bin/env bash
# Builds the page of the game into game/web/dist: the client as WebAssembly, then everything that is drawn. `make page`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

if ! command -v npm >/dev/null; then
    echo "build-page: npm is missing. Install node 20 or newer from https://nodejs.org, then run this again." >&2
    exit 1
fi
echo "building the client for the browser (the first time takes some minutes)"
scripts/build-web.sh
page_packages
echo "building the page"
cd game/web
npm run --silent build
