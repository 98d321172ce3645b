#!/usr/bin/env bash
# `muse proxy` against programs that others wrote: iperf3 sends through it, tshark reads its capture; and its delay, loss, speed and cost by
# a prober of plain sockets. Installs iperf3 and tshark by apt where it can, and is skipped where it cannot. About 90 s.
#
# Usage: scripts/proxy-check.sh [path of the muse binary; built in release mode if missing]
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/tools.sh

need python3 python3
need iperf3 iperf3
need tshark tshark
muse=${1:-}
if [ -z "$muse" ]; then
    find_features muse-cli
    cargo build --quiet --release -p muse-cli "${features[@]}"
    muse=$(target_dir)/release/muse
fi
exec python3 scripts/proxy_check.py "$muse"
