#!/usr/bin/env bash
# The master with PostgreSQL and NATS, both from the system's packages, which are installed if they are missing: the conformance suite of the
# store, then the shipped binary while the database, the bus and a leader are stopped, killed and started again. NATS_SERVER names another
# nats-server than the system's. Takes about three minutes beside the build.
set -euo pipefail
cd "$(dirname "$0")/.."

# The tests start servers of their own; RUNLEVEL=1 keeps the packages from starting theirs.
missing=()
[[ -d /usr/lib/postgresql ]] || missing+=(postgresql)
PATH=$PATH:/usr/sbin
command -v "${NATS_SERVER:-nats-server}" >/dev/null || missing+=(nats-server)
if ((${#missing[@]} > 0)); then
    if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
        echo "install ${missing[*]} first"
        exit 1
    fi
    apt-get -qq update
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

cargo clippy --quiet -p muse-master -p muse-cli --features muse-cli/postgres,muse-cli/nats --all-targets -- -D warnings
cargo test --quiet -p muse-master --features postgres,nats --test store --test bus -- postgres nats
cargo test --quiet -p muse-cli --features postgres,nats --test master -- several
