#!/usr/bin/env bash
# Two players behind routers of their own, and a relay: network namespaces, with nftables for the routers. Needs root, ip and nft, and is skipped
# where it cannot have them.
#
#   tests/relay-v2/nats.sh path/to/muse
#
# Symmetric routers (every destination has another port) must finish their session through the relay, others must find the direct way.
set -euo pipefail
. "$(dirname "$0")/../../scripts/tools.sh"
muse=$(realpath "${1:?the muse binary}")

need ip iproute2
need nft nftables
need python3 python3
[ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null || skip "namespaces cannot be made here"

tag=muse$$
work=$(mktemp -d)
pids=()
spaces=("$tag-net" "$tag-r1" "$tag-r2" "$tag-p1" "$tag-p2")
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT

within() { local space=$1; shift; ip netns exec "$tag-$space" "$@"; }

# A cable between two namespaces.
cable() { # name space address, twice
    ip link add "$1" netns "$tag-$2" type veth peer name "$4" netns "$tag-$5"
    within "$2" ip addr add "$3" dev "$1"
    within "$5" ip addr add "$6" dev "$4"
    within "$2" ip link set "$1" up
    within "$5" ip link set "$4" up
}

for space in "${spaces[@]}"; do
    ip netns add "$space" || skip "namespaces cannot be made here"
    ip -n "$space" link set lo up
done
# The internet is one machine that routes, and has the relay.
within net sysctl -qw net.ipv4.ip_forward=1
for n in 1 2; do
    cable "out$n" net "203.0.$n.1/24" wan "r$n" "203.0.$n.2/24"
    cable lan "r$n" "192.168.$n.1/24" eth "p$n" "192.168.$n.2/24"
    within "r$n" sysctl -qw net.ipv4.ip_forward=1
    within "r$n" ip route add default via "203.0.$n.1"
    within "p$n" ip route add default via "192.168.$n.1"
    # Private addresses do not cross the internet.
    within net ip route add unreachable "192.168.$n.0/24"
done

# $1: what masquerading does with ports. "fully-random" gives every destination its own: a symmetric router.
routers() {
    for n in 1 2; do
        within "r$n" nft -f - <<RULES
flush ruleset
table ip nat {
    chain out { type nat hook postrouting priority 100; oifname "wan" masquerade $1; }
}
table ip filter {
    chain forward {
        type filter hook forward priority 0; policy drop;
        iifname "lan" accept
        ct state established,related accept
    }
    chain input {
        type filter hook input priority 0; policy accept;
        iifname "wan" meta l4proto udp ct state new drop
    }
}
RULES
    done
}

# Whether a process has the key of a file nowhere in its memory, neither as bytes nor as text.
without_key() {
    python3 - "$1" "$2" <<'SEARCH'
import re, sys
text = open(sys.argv[2]).read().strip()
wanted = [text.encode(), bytes.fromhex(text)]
found = searched = 0
with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb") as memory:
    for line in maps:
        start, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if rights[:2] != "rw":
            continue
        try:
            memory.seek(int(start, 16))
            content = memory.read(int(end, 16) - int(start, 16))
        except OSError:
            continue
        searched += len(content)
        found += sum(content.count(key) for key in wanted)
assert searched > 1_000_000, searched
sys.exit(found > 0)
SEARCH
}

session() { # name of the router, what masquerading does, the way that must be found, the host's port: routers remember the one before
    routers "$2"
    local dir="$work/$1"
    mkdir "$dir"
    ip netns exec "$tag-net" "$muse" relay --listen 203.0.1.1:7788 --open --drain-seconds 2 >"$dir/relay" 2>&1 &
    local relay=$!
    pids+=("$relay")
    until grep -qs ready "$dir/relay"; do sleep 0.1; done
    ip netns exec "$tag-p1" "$muse" echo --listen "0.0.0.0:$4" --key-file "$dir/key" --relay 203.0.1.1:7788 >"$dir/host" 2>&1 &
    local host=$!
    pids+=("$host")
    for _ in $(seq 100); do grep -qs muse2: "$dir/host" && break; sleep 0.1; done
    local invitation
    invitation=$(sed -n 's/^muse ping \(muse2:.*\)/\1/p' "$dir/host")
    within p2 "$muse" ping "$invitation" --count 30 --interval-ms 100 --timeout-ms 8000 >"$dir/guest" 2>&1 || {
        cat "$dir/host" "$dir/relay" "$dir/guest"; echo "$1: the session failed"; exit 1; }
    grep -q "30 sent, 30 received" "$dir/guest" || { cat "$dir/guest"; echo "$1: pings were lost"; exit 1; }
    local way=relayed
    grep -q "^directly" "$dir/guest" && way=direct
    without_key "$relay" "$dir/key" || { echo "$1: the host's key is in the relay's memory"; exit 1; }
    kill -TERM "$host" "$relay"
    wait "$host" "$relay" 2>/dev/null || true
    echo "$1: 30 of 30, $way"
    [ "$way" = "$3" ] || { cat "$dir/guest"; echo "$1: $3 was expected"; exit 1; }
}

session symmetric "fully-random" relayed 5000
session cone "persistent" direct 5001
echo "routers: 2 passed, 0 failed"
