#!/usr/bin/env bash
# The demo behind `make play`: an echo server and a client that talks to it, encrypted, over UDP on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "building the demo"
cargo build --release --quiet -p muse-net --example echo
target=$(cargo metadata --no-deps --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')
echo=$target/release/examples/echo

log=$(mktemp)
"$echo" server 127.0.0.1:0 >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; rm -f "$log"' EXIT

# The server says where it listens and by which key clients know it.
for _ in $(seq 100); do
    line=$(grep -m1 '^listening at ' "$log" || true)
    [[ -n $line ]] && break
    kill -0 "$server" 2>/dev/null || { cat "$log"; exit 1; }
    read -r -t 0.1 <> <(:) || true
done
[[ -n $line ]] || { echo "the server did not start"; cat "$log"; exit 1; }
address=$(sed -E 's/^listening at ([^,]+),.*/\1/' <<<"$line")
key=$(sed -E 's/.* key ([0-9a-f]+).*/\1/' <<<"$line")

echo "server: $line"
echo "client: says three things and waits for each echo"
"$echo" client "$address" "$key" one two three
echo
echo "By hand, in two terminals:"
echo "  cargo run --release -p muse-net --example echo -- server"
echo "  cargo run --release -p muse-net --example echo -- client"
