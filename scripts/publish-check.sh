#!/usr/bin/env bash
# Whether every crate that is to be published could be: complete metadata, and a package that holds everything it needs. Nothing is uploaded. With --build
# each package is unpacked and compiled as a user would get it, which takes minutes. With cargo-semver-checks installed, interfaces are compared with those of the
# last release (a tag v*), or of the revision in SEMVER_BASELINE.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need python3 python3
target=$(target_dir)
names=$(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
wrong = []
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] == []:
        continue
    for field in ("description", "license", "repository", "readme", "keywords", "categories"):
        if not package[field]:
            wrong.append("{}: no {}".format(package["name"], field))
    print(package["name"])
if wrong:
    sys.exit("publish-check: " + "; ".join(wrong))
')
read -r -d '' -a crates <<<"$names" || true
packages=()
for crate in "${crates[@]}"; do
    packages+=(-p "$crate")
done
verify=(--no-verify)
[[ ${1:-} == --build ]] && verify=()
# All at once: each finds the others among the packages, as if they were published already.
cargo package --quiet --allow-dirty "${verify[@]}" "${packages[@]}"
for crate in "${crates[@]}"; do
    file=("$target/package/$crate"-*.crate)
    [[ -f ${file[-1]} ]] || {
        echo "publish-check: $crate was not packaged" >&2
        exit 1
    }
    # Both licences want their text in every copy.
    for text in LICENSE-MIT LICENSE-APACHE; do
        tar -tzf "${file[-1]}" | grep "/$text\$" >/dev/null || {
            echo "publish-check: $crate has no $text" >&2
            exit 1
        }
    done
done
echo "publish-check: can be packaged: ${crates[*]}"

# The baseline: the last release, or a revision of your own, as before the first one.
baseline=${SEMVER_BASELINE:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [[ -z $baseline ]]; then
    echo "publish-check: nothing is released yet that interfaces could be compared with"
elif cargo semver-checks --version >/dev/null 2>&1; then
    cargo semver-checks --baseline-rev "$baseline" "${packages[@]}"
else
    echo "packages: ${#crates[@]} passed, 0 failed"
    skip "there is no cargo-semver-checks (cargo install cargo-semver-checks): interfaces are not compared with $baseline"
fi
echo "packages: ${#crates[@]} passed, 0 failed"
