#!/usr/bin/env bash
# Tries what `make dist` has built as somebody does who has downloaded it: in a root file system that holds nothing else, with two browsers in front of it.
# Usage: scripts/dist-check.sh [TARBALL]. Prints `name value limit ok|short`; exit code 3 if something is short. Needs Chromium, node and npm, and
# the right to change the root, as root or in a user namespace.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

tarball=${1:-}
if [[ -z $tarball ]]; then
    for tarball in "$(target_dir)"/dist-files/muse-*.tar.xz; do
        [[ -f $tarball ]] || skip "nothing is built (make dist)"
    done
fi
need python3 python3
need_npm
need_chromium
page_packages
unshare --map-root-user --mount --pid --fork true 2>/dev/null || skip "this machine lets nobody change the root"
exec python3 scripts/dist_check.py "$(realpath "$tarball")"
