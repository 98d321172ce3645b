#!/usr/bin/env bash
# Builds an image for containers from what `make dist` has built: scripts/image.sh [TARBALL] [NAME]. Needs buildah; nothing is fetched, and nothing runs.
# The same tarball gives the same layers. BUILDAH_OPTIONS are options of buildah itself, such as --root.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need buildah buildah
tarball=${1:-$(ls "$(target_dir)"/dist-files/muse-*.tar.xz 2>/dev/null || true)}
[[ -f $tarball ]] || skip "nothing is built (make dist)"
version=$(basename "$tarball" | sed -E 's/^muse-([^-]*)-.*/\1/')
name=${2:-muse:$version}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/data"
tar --extract --file "$tarball" --directory "$context" --strip-components 1 --wildcards '*/muse'
touch --reference "$context/muse" "$context/data"
# Health checks are in Docker's format, which everything reads.
read -ra options <<<"${BUILDAH_OPTIONS:-}"
buildah "${options[@]}" build --quiet --format docker --isolation chroot --timestamp "$(stat --format %Y "$context/muse")" \
    --file deploy/container/Containerfile --tag "$name" "$context"
