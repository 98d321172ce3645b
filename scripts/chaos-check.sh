#!/usr/bin/env bash
# Several masters under faults in the manner of Jepsen (tests/chaos), and the restore drill: backups that are taken under load and restored elsewhere. PostgreSQL,
# NATS, faketime and sqlite3 are the system's, and are installed if they are missing. As root, the databases get small disks of their own, which are filled; other
# users run without that fault.
#
# One short seed takes a minute. MUSE_SEEDS=10 MUSE_CHAOS_SECONDS=360 runs ten seeds of six minutes, MUSE_CHAOS_SEED names the first one. The history and the
# logs of each are in target/tmp/chaos.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

PATH=$PATH:/usr/sbin
need /usr/lib/postgresql postgresql
need "${NATS_SERVER:-nats-server}" nats-server
need faketime faketime
need sqlite3 sqlite3
find_features
# Disks that are mounted here are gone when it ends, however it ends.
alone=()
[[ $(id -u) != 0 ]] || ! unshare --mount true 2>/dev/null || alone=(unshare --mount)
if cargo nextest --version >/dev/null 2>&1; then
    # One after the other: what else runs on the machine is a fault that the seed does not know.
    exec "${alone[@]}" cargo nextest run --workspace "${features[@]}" --no-fail-fast --test-threads 1 --success-output final \
        --status-level fail --final-status-level fail -E "$with_chaos"
fi
exec "${alone[@]}" cargo test --quiet --workspace "${features[@]}" --no-fail-fast --test chaos -- --test-threads 1 "${chaos[@]}"
