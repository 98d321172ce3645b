#!/usr/bin/env bash
# The master with PostgreSQL and NATS, both from the system's packages, which are installed if they are missing: the conformance suite of the
# store, then the shipped binary while the database, the bus and a leader are stopped, killed and started again. Each test starts servers of its
# own, at free ports in a temporary folder and not as root, and ends them. NATS_SERVER names another nats-server than the system's.
# Takes about three minutes beside the build.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

PATH=$PATH:/usr/sbin
need /usr/lib/postgresql postgresql
need "${NATS_SERVER:-nats-server}" nats-server
find_features
if cargo nextest --version >/dev/null 2>&1; then
    exec cargo nextest run --workspace "${features[@]}" --no-fail-fast --status-level fail --final-status-level fail -E "$with_servers"
fi
exec cargo test --quiet --workspace "${features[@]}" --no-fail-fast --test store --test bus --test master -- "${servers[@]}"
