# What the scripts of this folder share; they source it after changing to the root of the repository.
# shellcheck shell=bash

# Ends the script, or the step of the gate that calls it, as skipped: neither passed nor failed.
skip() {
    echo "skipped: $*"
    exit 77
}

# True if a command or a file is there.
have() {
    [[ -e $1 ]] || command -v "$1" >/dev/null
}

# Installs Debian packages where that is allowed, for one step at a time. RUNLEVEL=1 keeps them from starting servers.
install_packages() {
    [[ $(id -u) == 0 ]] && have apt-get || return 1
    local install=(env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@")
    (
        flock 8
        "${install[@]}" >/dev/null 2>&1 || { apt-get -qq update && "${install[@]}" >/dev/null; }
    ) 8>"${TMPDIR:-/tmp}/muse-install.lock"
}

# True if a command or a file is there, after installing the packages that are named after it.
get() {
    have "$1" || { install_packages "${@:2}" && have "$1"; }
}

# As `get`; without it the step is skipped.
need() {
    get "$@" || skip "there is no $1 (apt-get install ${*:2})"
}

# Puts the path of a Chromium into CHROMIUM.
get_chromium() {
    local name
    for name in chromium chromium-browser google-chrome; do
        CHROMIUM=${CHROMIUM:-$(command -v "$name" || true)}
    done
    if [[ -z $CHROMIUM ]] && get chromium chromium fonts-dejavu-core; then
        CHROMIUM=$(command -v chromium)
    fi
    export CHROMIUM
    [[ -n $CHROMIUM ]]
}

need_chromium() {
    get_chromium || skip "there is no Chromium (apt-get install chromium)"
}

# Debian's node is too old for some of the packages, so it is not installed here.
need_npm() {
    have npm || skip "there is no npm (node 20 or newer from https://nodejs.org)"
}

# Installs the packages of the game's page, which other tests in browsers use as well, if they have changed.
page_packages() {
    cmp -s game/web/package-lock.json game/web/node_modules/.installed && return
    # Not `npm ci`: it refuses lock files that leave out what other platforms need.
    (cd game/web && npm install --no-save --no-audit --no-fund --loglevel=error) &&
        cp game/web/package-lock.json game/web/node_modules/.installed
}

target_dir() {
    cargo metadata --no-deps --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/'
}

# Agones' crate compiles its definitions, which include protoc's own.
have_protoc() {
    have protoc && have /usr/include/google/protobuf/descriptor.proto
}

# The features of every build of the workspace in the array `features`: all of them, so that what is shipped is tested and nothing is
# compiled twice. Without protoc Agones' are left out. With names of packages, as they are for a build of these alone.
find_features() {
    if have_protoc; then
        # shellcheck disable=SC2034 # used by those who source this
        features=(--all-features)
    else
        # shellcheck disable=SC2034
        features=(--features "$(python3 scripts/workspace.py features --without agones "$@")")
    fi
}

# Tests that start PostgreSQL or NATS, for nextest, and how `cargo test` chooses them and leaves them out.
# shellcheck disable=SC2034
with_servers='package(muse-master) & test(/(^|::)(postgres|nats)_/) | package(muse-cli) & test(/^several::/)'
# shellcheck disable=SC2034
servers=(postgres_keeps shared::nats_ several::)
# Whole clusters under faults and backups, which need more than that and run alone.
# shellcheck disable=SC2034
with_chaos='package(muse-cli) & test(/^(cluster_run|restore)::/)'
# shellcheck disable=SC2034
chaos=(cluster_run:: restore::)
# shellcheck disable=SC2034
without_servers=(--skip postgres_keeps --skip shared::nats_ --skip several:: --skip cluster_run:: --skip restore::)
