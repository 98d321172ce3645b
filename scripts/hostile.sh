#!/usr/bin/env bash
# Attacks the real programs over sockets and judges what honest players notice: `scripts/hostile.sh MUSE [--quick]`.
#
# One line for each bar (`name value limit ok|short`); exit code 3 if one falls short. MUSE is a program built with the feature `tools`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
muse=$1
shift

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
status=0
for bench in flood hostile; do
    "$muse" bench "$bench" --bars "$@" | tee -a "$lines"
    result=${PIPESTATUS[0]}
    ((result == 0)) || status=$result
done
echo "hostile: $(grep -cE ' ok$' "$lines") passed, $(grep -cE ' short$' "$lines") failed"
exit "$status"
