#!/usr/bin/env bash
# Bevy's plugin under `DefaultPlugins`: runs bindings/bevy/window on a virtual screen, drawn by software, takes a picture while two players move,
# and fails if a tick ran twice or a player is not in the picture. The first build takes about ten minutes.
#
# Usage: scripts/bevy-window.sh [where the picture goes; target/bevy-window.png by default]
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/tools.sh

need Xvfb xvfb
need xwd x11-apps
need xwdtopnm netpbm
# What a window opens when it starts.
have_libraries() {
    compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null && [[ $(ldconfig -p) == *libxkbcommon-x11.so.0* ]]
}
libraries=(mesa-vulkan-drivers libxkbcommon-x11-0)
have_libraries || { install_packages "${libraries[@]}" && have_libraries; } ||
    skip "there is no Vulkan or no libxkbcommon-x11 (apt-get install ${libraries[*]})"

# Colours of the own player and of the other, as bindings/bevy/window draws them, and the least number of pixels of each.
own='64 192 96'
other='240 144 48'
pixels_min=700
seconds=10

picture=${1:-$(target_dir)/bevy-window.png}
mkdir -p "$(dirname "$picture")"
work=$(mktemp -d)
cleanup() {
    # shellcheck disable=SC2046 # one id each
    kill $(jobs -p) 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap cleanup EXIT

# Bevy 0.20 asks for Rust 1.97.1, but 1.95, with which the plugin is tested, compiles it.
(cd bindings/bevy/window && cargo build --quiet --ignore-rust-version)
program=$(cd bindings/bevy/window && target_dir)/debug/muse-bevy-window

# It chooses a free number for its screen, and writes that to descriptor 3.
Xvfb -displayfd 3 -screen 0 1280x720x24 3>"$work/display" 2>"$work/xvfb.log" &
for _ in {1..100}; do
    [[ ! -s $work/display ]] || break
    sleep 0.1
done
DISPLAY=:$(cat "$work/display")
export DISPLAY XDG_RUNTIME_DIR=$work

"$program" "$seconds" >"$work/log" 2>"$work/errors" &
running=$!
# Both have run far enough to leave dots behind.
until grep -q 'window: 300 ticks, .* 2 players' "$work/log"; do
    if ! kill -0 "$running" 2>/dev/null; then
        cat "$work/log" "$work/errors"
        echo "it ended before the picture was taken" >&2
        exit 1
    fi
    sleep 0.1
done
xwd -root -silent | xwdtopnm -quiet >"$work/picture.ppm"
wait "$running" || { cat "$work/log" "$work/errors"; exit 1; }
cat "$work/log"

pnmtopng -quiet "$work/picture.ppm" >"$picture"
echo "picture: $picture"
for color in "$own" "$other"; do
    pixels=$(ppmhist -noheader "$work/picture.ppm" | awk -v color="$color" '$1 " " $2 " " $3 == color { print $5 }')
    echo "pixels of colour $color: ${pixels:-0}"
    ((${pixels:-0} >= pixels_min)) || { echo "a player is missing in the picture" >&2; exit 1; }
done
