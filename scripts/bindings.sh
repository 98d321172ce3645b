#!/usr/bin/env bash
# The C library and the C# package, as those who use them would: compiled by gcc, g++ and mono against the committed header, under valgrind, and
# through the session that every binding plays against the same server to the same result (bindings/capi/examples/session).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

need gcc gcc libc6-dev
need g++ g++
# C# and valgrind are left out where they cannot be had, and counted as skipped.
mono=yes
get mcs mono-mcs mono-runtime || mono=
target=$(target_dir)
find_features
out=$target/bindings
library=$target/debug
mkdir -p "$out" "$target/tmp/capture"

build() {
    # All of the workspace, as the tests build it: a part of it alone would be rebuilt with fewer features.
    cargo build --quiet --workspace "${features[@]}" --lib --example session --example bevy_session
    CARGO_TARGET_DIR=$target/header cargo run --quiet --manifest-path bindings/capi/header/Cargo.toml -- --check
    local c=bindings/capi/tests/c flags=(-O1 -g -Wall -Wextra -Werror -Ibindings/capi/include)
    gcc -std=c11 -Wpedantic "${flags[@]}" "$c/api.c" -o "$out/api" "$library/libmuse.a" -lm -lpthread -ldl
    gcc -std=c11 -Wpedantic "${flags[@]}" "$c/session.c" -o "$out/session" -L"$library" -lmuse -Wl,-rpath,"$library"
    # The same program as C++, which has another idea of structures whose fields are not all named.
    g++ -x c++ -std=c++20 "${flags[@]}" -Wno-missing-field-initializers "$c/session.c" -o "$out/session-cpp" -L"$library" -lmuse -Wl,-rpath,"$library"
    g++ -std=c++17 "${flags[@]}" "$c/threads.cpp" -o "$out/threads" -L"$library" -lmuse -Wl,-rpath,"$library" -lpthread
}

build_csharp() {
    local cs=bindings/csharp
    mcs -unsafe -langversion:latest -warnaserror+ -define:NETSTANDARD2_1 -target:library -out:"$out/Muse.dll" "$cs"/Runtime/*.cs
    for program in Api Session Throughput; do
        mcs -langversion:latest -warnaserror+ -r:"$out/Muse.dll" -out:"$out/$program.exe" "$cs/Tests~/$program.cs"
    done
    # The samples compile against what they use of Unity.
    mcs -langversion:latest -warnaserror+ -r:"$out/Muse.dll" -target:library -out:"$out/Samples.dll" \
        "$cs"/Samples~/*/*.cs "$cs/Tests~/UnityStubs.cs"
}

csharp() {
    LD_LIBRARY_PATH=$library mono "$out/$1.exe" "${@:2}"
}

# The assembly of ring's AES-GCM works on key tables that it fills in part, so that memcheck takes every sealed byte for unknown.
ring_is_known() {
    local place
    printf '{\n ring-opens\n Memcheck:Cond\n fun:*ring*aead*open_within*\n}\n'
    for place in 'msg.msg_iov[0]' mmsg[{0..63}].msg_hdr.msg_iov[0]; do
        printf '{\n ring-sealed\n Memcheck:Param\n sendmsg(%s)\n fun:s*\n}\n' "$place"
    done
}

under_valgrind() {
    if ! get valgrind valgrind; then
        echo "skipped: there is no valgrind"
        echo "capi-valgrind: 0 passed, 0 failed, 1 skipped"
        return
    fi
    ring_is_known >"$out/ring.supp"
    valgrind --quiet --suppressions="$out/ring.supp" --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
        "$out/api" | sed 's/^capi:/capi-valgrind:/'
}

# Starts a server of the session, which ends with descriptor 9: where it is becomes $server, $address and $key.
serve() {
    local ready
    mkfifo "$out/input.$$"
    "$library/examples/session" "$@" <"$out/input.$$" >"$out/server.txt" &
    server=$!
    exec 9>"$out/input.$$"
    rm "$out/input.$$"
    while ! read -r ready address key _ <"$out/server.txt"; do
        kill -0 $server || return 1
        sleep 0.05
    done
    [[ $ready == ready ]]
}

# Plays the session in each language and compares what they print.
sessions() {
    local server address key status=0 name names=(c cpp bevy)
    [[ -z $mono ]] || names+=(csharp)
    rm -f "$target"/tmp/capture/session.*
    serve serve "$target/tmp/capture/session.pcapng" "$target/tmp/capture/session.keys"
    "$library/examples/session" play "$address" "$key" >"$out/session.rust.txt" || status=1
    "$out/session" "$address" "$key" >"$out/session.c.txt" || status=1
    "$out/session-cpp" "$address" "$key" >"$out/session.cpp.txt" || status=1
    [[ -z $mono ]] || csharp Session "$address" "$key" >"$out/session.csharp.txt" || status=1
    exec 9>&-
    wait "$server" || status=1
    # The same server with the channels of the plugin in front.
    serve serve-bevy
    "$library/examples/bevy_session" "$address" "$key" >"$out/session.bevy.txt" || status=1
    exec 9>&-
    wait "$server" || status=1
    for name in "${names[@]}"; do
        diff "$out/session.rust.txt" "$out/session.$name.txt" || status=1
    done
    if grep -E 'broken|false' "$out/session.rust.txt" || [[ $(tail -n 1 "$out/session.rust.txt") != "done" ]]; then
        status=1
    fi
    if ((status == 0)); then
        echo "session: $((1 + ${#names[@]})) passed, 0 failed"
    else
        cat "$out/session.rust.txt"
        echo "session: 0 passed, $((1 + ${#names[@]})) failed"
        return 1
    fi
}

# The first program of a page, as a newcomer would copy it.
program_of() {
    awk -v fence='```'"$2" '$0 == "```" && inside { exit } inside { print } $0 == fence { inside = 1 }' "$1"
}

start_pages() {
    local page
    for page in docs/guide/start-c.md bindings/capi/README.md; do
        program_of "$page" c >"$out/hello.c"
        gcc "$out/hello.c" -Ibindings/capi/include -L"$library" -lmuse -Wl,-rpath,"$library" -o "$out/hello"
        [[ $("$out/hello") == hello ]]
    done
    echo "session-pages: 2 passed, 0 failed"
}

start_page_csharp() {
    program_of docs/guide/start-unity.md csharp >"$out/Hello.cs"
    mcs -unsafe -langversion:latest -out:"$out/Hello.exe" "$out/Hello.cs" bindings/csharp/Runtime/*.cs
    [[ $(csharp Hello) == "heard hello" ]]
    echo "session-unity: 1 passed, 0 failed"
}

build
"$out/api"
"$out/threads"
under_valgrind
start_pages
if [[ -n $mono ]]; then
    build_csharp
    csharp Api
    csharp Throughput "${THROUGHPUT_SECONDS:-3}"
    start_page_csharp
else
    echo "skipped: there is no mono"
    echo "csharp: 0 passed, 0 failed, 4 skipped"
fi
sessions
