#!/usr/bin/env bash
# Builds what `make dist` has built once more, from a clone in another folder with nothing in it, and compares the files byte by byte.
# Takes as long as `make dist` for the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

target=$(target_dir)
[[ -f $target/dist-files/SHA256SUMS ]] || skip "nothing is built (make dist)"
git diff --quiet HEAD || skip "the changes since the last commit would not be in the clone"
place=$(mktemp -d "$target/again.XXXXXX")
trap 'rm -rf "$place"' EXIT
git clone --quiet . "$place/muse"
(cd "$place/muse" && env -u CARGO_TARGET_DIR -u DIST_OUT scripts/dist.sh >/dev/null)
diff "$target/dist-files/SHA256SUMS" "$place/muse/target/dist-files/SHA256SUMS"
echo "the same bytes: $(cut -d ' ' -f 3 "$target/dist-files/SHA256SUMS" | tr '\n' ' ')"
