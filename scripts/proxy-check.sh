#!/usr/bin/env bash
# `muse proxy` against programs that others wrote: iperf3 sends through it, tshark reads its capture; and its delay, loss, speed and cost by
# a prober of plain sockets. Installs iperf3 and tshark by apt where it can; says what it left out where it cannot. About 90 s.
#
# Usage: scripts/proxy-check.sh [path of the muse binary; built in release mode if missing]
set -euo pipefail
cd "$(dirname "$0")/.."

muse=${1:-}
if [ -z "$muse" ]; then
    cargo build --quiet --release -p muse-cli --features tools
    muse=${CARGO_TARGET_DIR:-target}/release/muse
fi
for tool in iperf3 tshark; do
    if ! command -v "$tool" >/dev/null && command -v apt-get >/dev/null; then
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$tool"; } >/dev/null 2>&1 || true
    fi
done
exec python3 scripts/proxy_check.py "$muse"
