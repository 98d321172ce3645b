#!/usr/bin/env bash
# Makes the film of the README, docs/pictures/biobot.webp (`make film`): records a match of bots over UDP, lets the page draw it picture by picture at full
# resolution, and encodes the pictures. Usage: scripts/film.sh [RECORDING [SLOT@TICK ...]]. FILM_MODE=ball makes the one of a match with the ball,
# docs/pictures/ball.webp. MUSE names a program that is built already, FILM_SECONDS the length of the match, FILM another file to write. Without a GPU it takes
# some minutes: every picture is drawn by the processor.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

mode=${FILM_MODE:-coop}
case $mode in
    ball) name=ball bots=8 width=720 bytes_max=$((2 * 1000 * 1000)) ;;
    coop) name=biobot bots=2 width=960 bytes_max=$((4 * 1000 * 1000)) ;;
    *) echo "film: FILM_MODE is coop or ball, not $mode" >&2 && exit 2 ;;
esac
film=${FILM:-docs/pictures/$name.webp}
need_npm
need_chromium
need ffmpeg ffmpeg
need img2webp webp
scripts/build-page.sh
work=$(mktemp -d)
game=
trap '[[ -z $game ]] || kill "$game" 2>/dev/null || true; rm -rf "$work"' EXIT

# A match of bots, who get some way through the level in this time, or score some goals.
record() {
    local muse=${MUSE:-$(target_dir)/release/muse} seconds=${FILM_SECONDS:-300} address key
    [[ -n ${MUSE:-} ]] || cargo build --release --quiet -p muse-cli
    "$muse" game --listen 127.0.0.1:0 --no-web --mode "$mode" --players "$bots" --danger-no-tokens --replay "$1" >"$work/game.log" &
    game=$!
    for _ in $(seq 150); do
        grep -q '^listening' "$work/game.log" && break
        kill -0 "$game"
        sleep 0.1
    done
    read -r address key < <(sed -nE 's/^listening at ([^,]*), key (.*)$/\1 \2/p' "$work/game.log")
    echo "$bots bots play for $seconds seconds"
    "$muse" bots --count "$bots" --server "$address" --key "$key" --seconds "$seconds"
    kill -TERM "$game" 2>/dev/null || true
    wait "$game" || true
    game=
}

recording=${1:-$work/match.muserply}
[[ -n ${1:-} ]] || record "$recording"
recording=$(realpath "$recording")
mkdir "$work/pictures"
(cd game/web && node film.mjs "$recording" "$work/pictures" "${@:2}")

# As good as the limit allows. Every picture is a whole one (-kmax 1): differences are no smaller where the camera moves, and leave blocks in the sky.
mkdir "$work/small"
ffmpeg -loglevel error -i "$work/pictures/%04d.png" -vf "scale=$width:-1:flags=lanczos" "$work/small/%04d.png"
for quality in 75 65 55 45 35; do
    img2webp -loop 0 -kmin 0 -kmax 1 -d 50 -lossy -q "$quality" -m 6 "$work"/small/*.png -o "$film" >/dev/null
    bytes=$(wc -c <"$film")
    echo "film: $film: $bytes bytes at quality $quality"
    ((bytes < bytes_max)) && exit
done
echo "film: larger than $bytes_max bytes" >&2
exit 1
