#!/usr/bin/env bash
# HTTPS with the shipped program and HAProxy and Caddy in front. Usage: scripts/https-check.sh path/to/muse haproxy|caddy ...
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need python3 python3
need openssl openssl
for tool in "${@:2}"; do
    need "$tool" "$tool"
done
python3 tests/https/test_https.py "$@"
