#!/usr/bin/env bash
# Asks a running master everything its OpenAPI page describes, well-formed and not: no 5xx, no answer that the page does not describe.
# Usage: scripts/openapi-check.sh path/to/muse. Takes about a minute; schemathesis comes from PyPI into the target folder.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need python3 python3
muse=$1
tools=$(dirname "$muse")/../tmp/schemathesis
if [[ ! -x $tools/bin/schemathesis ]]; then
    if ! { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet "schemathesis==4.32.5"; }; then
        rm -rf "$tools"
        skip "schemathesis cannot be had from PyPI, or there is no python3-venv"
    fi
fi

folder=$(mktemp -d)
master=
finish() {
    if [[ -n $master ]]; then
        kill -9 "$master" 2>/dev/null || true
        wait "$master" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap finish EXIT

export MUSE_OPERATOR_PASSWORD="password of a check"
"$muse" master --listen 127.0.0.1:0 --requests-per-second 0 --account-requests-per-second 0 --passwords-per-minute 0 --warm 0 --matches-max 0 --operator checker \
    --database "$folder/muse.db" >"$folder/address" 2>"$folder/log" &
master=$!
for _ in $(seq 100); do
    [[ -s $folder/address ]] && break
    sleep 0.1
done
url=$(head -1 "$folder/address")

post() {
    python3 - "$url$1" "$2" "$3" <<'PYTHON'
import json, sys, urllib.request
url, body, field = sys.argv[1:]
request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))[field])
PYTHON
}
player=$(post /v1/guest '{"device_key": "the device of a check"}' access_token)
operator=$(post /admin/api/sign-in '{"name": "checker", "password": "password of a check"}' token)

check() {
    (cd "$folder" && timeout 240 "$tools/bin/schemathesis" run "$url/openapi.json" --no-color --seed 1 --max-examples 10 \
        --header "Authorization: Bearer $1" --exclude-checks positive_data_acceptance,negative_data_rejection \
        --suppress-health-check all "${@:2}" >"$folder/report" 2>&1) || { tail -150 "$folder/report"; return 1; }
    grep -E "generated|Tested:" "$folder/report" || true
}
tools=$(cd "$tools" && pwd)
# What voids the token in use is asked last, and without one.
check "$player" --include-path-regex '^/(v1|health|ready|metrics)' --exclude-path /v1/account --exclude-path /v1/sign-out-everywhere
check "$operator" --include-path-regex '^/admin'
check "none" --include-path /v1/account --include-path /v1/sign-out-everywhere
# It lives, and nothing went wrong unseen.
kill -0 "$master"
if grep -iE "panicked|ERROR" "$folder/log"; then
    echo "the master's log has errors"
    exit 1
fi
echo "openapi: no 5xx and no undocumented answer"
