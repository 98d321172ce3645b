#!/usr/bin/env bash
# Builds the image and runs it with podman, read-only and without any right: the health check passes, and two bots are matched and play there.
# Usage: scripts/image-check.sh [TARBALL]. Needs buildah and podman; the image is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need buildah buildah
need podman podman
get runc runc || true
tarball=${1:-$(ls "$(target_dir)"/dist-files/muse-*.tar.xz 2>/dev/null || true)}
[[ -f $tarball ]] || skip "nothing is built (make dist)"
tarball=$(realpath "$tarball")

place=$(mktemp -d)
store=(--storage-driver vfs --root "$place/store" --runroot "$place/run")
run=(podman "${store[@]}" --cgroup-manager cgroupfs)
# crun does not run where cgroups are mixed.
! have runc || run+=(--runtime runc)
end() {
    "${run[@]}" rm --force --time 5 muse >/dev/null 2>&1 || true
    "${run[@]}" image rm --force muse:check >/dev/null 2>&1 || true
    rm -rf "$place"
}
trap end EXIT

# What is in it; its id also covers the name of the container that it was built in.
layers() {
    BUILDAH_OPTIONS="${store[*]}" scripts/image.sh "$tarball" muse:check >/dev/null
    "${run[@]}" image inspect --format '{{.RootFS.Layers}}' muse:check
}
layers=$(layers)
[[ -n $layers && $(layers) == "$layers" ]]
echo "ok: the same layers twice"

# Limits that a machine may not raise are those of this shell.
limits=(--ulimit "nofile=$(ulimit -n):$(ulimit -n)" --ulimit nproc=1024:1024)
port=25781
"${run[@]}" run --detach --name muse --network host --read-only --cap-drop all --security-opt no-new-privileges "${limits[@]}" \
    --env "MUSE_HEALTH_URL=http://127.0.0.1:$port/ready" muse:check up --port "$port" --relay-port 0 --first-port 25790 --bots-after-seconds 0 >/dev/null
for _ in $(seq 100); do
    "${run[@]}" healthcheck run muse >/dev/null 2>&1 && break
    sleep 0.1
done
"${run[@]}" healthcheck run muse >/dev/null
echo "ok: healthy"
user=$("${run[@]}" inspect --format '{{.Config.User}}' muse)
[[ $user == 65532:65532 ]]
echo "ok: not root"

tar --extract --file "$tarball" --directory "$place" --strip-components 1 --wildcards '*/muse'
timeout 90 "$place/muse" bots --count 2 --master "http://127.0.0.1:$port" --mode versus --players 2 --seconds 5 >"$place/bots"
grep -qx "all 2 play" "$place/bots"
echo "ok: two bots play"
"${run[@]}" stop --time 10 muse >/dev/null
[[ $("${run[@]}" inspect --format '{{.State.ExitCode}}' muse) == 0 ]]
echo "ok: it ends when it is told to"
echo "image: 5 passed, 0 failed"
