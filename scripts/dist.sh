#!/usr/bin/env bash
# Builds what is handed out, into `target/dist-files`: `make dist`. Needs what `make page` needs, a compiler for musl (Debian: musl-tools) and dpkg.
#
#   muse-VERSION-x86_64-linux.tar.xz    the program with the page inside, completions, manual, units for systemd, licences
#   muse_VERSION_amd64.deb              the same for Debian and Ubuntu
#   muse-VERSION-x86_64-linux.cdx.json  everything it was built from (CycloneDX), if cargo-cyclonedx can be had
#   SHA256SUMS                          of all of them
#
# The program is linked with musl and needs no library, whatever the distribution. The same commit gives the same bytes wherever it is built, as long as
# the compilers are the same: no path of this machine is in them, and no time but the commit's.
#
#   DIST_PROFILE=dev   packages a debug build, to try the packaging
#   DIST_PROGRAM=FILE  packages a program that is built already, for the same reason
#   DIST_FEATURES=...  features of the program; by default postgres,nats
#   DIST_PAGE=FOLDER   a page that is built already, instead of building one
#   DIST_OUT=FOLDER    where the files go
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

target=x86_64-unknown-linux-musl
profile=${DIST_PROFILE:-dist}
program_features=${DIST_FEATURES:-postgres,nats}
# Larger files are in the program in their compressed forms alone.
plain_bytes_max=65536

main() {
    local out name version
    version=$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json, sys
print(next(it["version"] for it in json.load(sys.stdin)["packages"] if it["name"] == "muse-cli"))')
    out=$(realpath -m "${DIST_OUT:-$(target_dir)/dist-files}")
    # Apart from other builds, which have other flags.
    export CARGO_TARGET_DIR
    CARGO_TARGET_DIR=$(target_dir)/ship
    name=muse-$version-x86_64-linux
    umask 022
    mkdir -p "$CARGO_TARGET_DIR"
    need_tools
    reproducible
    local program=${DIST_PROGRAM:-}
    if [[ -z $program ]]; then
        build_page
        build_program
        program=$CARGO_TARGET_DIR/$target/${profile/#dev/debug}/muse
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    rm -rf "$out"
    mkdir -p "$out"
    stage "$work/$name" "$program"
    pack "$work" "$name" "$out/$name.tar.xz"
    package "$work/$name" "$work/deb" "$version" "$out/muse_${version}_amd64.deb"
    bill "$out/$name.cdx.json"
    (cd "$out" && sha256sum -- * >SHA256SUMS)
    echo "in $out:"
    ls -l "$out"
}

need_tools() {
    need dpkg-deb dpkg
    need xz xz-utils
    [[ -z ${DIST_PROGRAM:-} ]] || return 0
    need musl-gcc musl-tools
    if [[ ! -d $(rustc --print target-libdir --target "$target") ]]; then
        timeout 300 rustup --quiet target add "$target" || skip "no standard library for $target (rustup target add $target)"
    fi
}

# Sets what all compilers of the build read: no paths of this machine, no names of functions.
reproducible() {
    local from to separator=$'\x1f' rust="" c="" commit name=${profile^^}
    commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
    while IFS='|' read -r from to; do
        rust+="$separator--remap-path-prefix=$from=$to"
        c+=" '-ffile-prefix-map=$from=$to'"
    done < <(
        echo "$PWD|/muse"
        echo "$CARGO_TARGET_DIR|/target"
        # The name of a registry's folder depends on its address.
        find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -mindepth 1 -maxdepth 1 -type d -printf '%p|/crates\n' | sort
        echo "$(rustc --print sysroot)/lib/rustlib/src/rust|/rustc/$commit"
    )
    export CARGO_ENCODED_RUSTFLAGS=${rust#"$separator"} CC_SHELL_ESCAPED_FLAGS=1 CFLAGS=${c# }
    export CARGO_INCREMENTAL=0 TZ=UTC LC_ALL=C SOURCE_DATE_EPOCH
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export "CARGO_PROFILE_${name}_DEBUG=false" "CARGO_PROFILE_${name}_STRIP=symbols" CC_x86_64_unknown_linux_musl=musl-gcc
}

# The page that goes into the program. It is left alone if it has not changed, so that nothing is built again.
build_page() {
    local from=${DIST_PAGE:-game/web/dist} page=$CARGO_TARGET_DIR/page file
    [[ -n ${DIST_PAGE:-} ]] || scripts/build-page.sh
    rm -rf "$page.new"
    cp -r "$from" "$page.new"
    while read -r file; do
        [[ ! -f $file.gz ]] || rm "$file"
    done < <(find "$page.new" -type f -size "+${plain_bytes_max}c")
    diff -rq "$page.new" "$page" >/dev/null 2>&1 || { rm -rf "$page" && mv "$page.new" "$page"; }
}

build_program() {
    echo "building the program (the first time takes many minutes)"
    MUSE_PAGE=$CARGO_TARGET_DIR/page cargo build --quiet --locked --profile "$profile" --target "$target" -p muse-cli --features "$program_features"
}

# Lays out in the folder $1 what the tarball has, with the program $2.
stage() {
    local folder=$1 shell
    mkdir -p "$folder"/{completions,man,systemd,licences}
    install -m 755 "$2" "$folder/muse"
    for shell in bash zsh fish; do
        "$folder/muse" completions "$shell" >"$folder/completions/muse.$shell"
    done
    "$folder/muse" man --out "$folder/man"
    # Pages of `muse help COMMAND` say nothing.
    rm "$folder"/man/*-help*.1
    cp deploy/systemd/* "$folder/systemd"
    cp LICENSE-MIT LICENSE-APACHE "$folder"
    cp CHANGELOG.md "$folder"
    python3 scripts/licences.py "$target" "$program_features" >"$folder/licences/crates.txt"
    cp game/web/node_modules/three/LICENSE "$folder/licences/three.txt"
    cat >"$folder/README" <<'END'
muse up serves a game at http://127.0.0.1:8080/: open it in two windows and press Play in both. muse --help lists the other commands.

completions, man   put them where your shell and man look for them
systemd            units for a master and a relay, and their options
licences           of everything that is part of the program
END
}

# Packs the folder $2 of $1 into $3: sorted, of nobody, with the time of the commit.
pack() {
    tar --create --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rwX --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$1" "$2" | xz -9 --threads=1 >"$3"
}

# Makes the package $4 of the version $3 from what is staged in $1, in the folder $2.
package() {
    local from=$1 root=$2 page
    mkdir -p "$root"/{DEBIAN,etc/muse,usr/bin,usr/lib/systemd/system,usr/share/doc/muse,usr/share/man/man1} \
        "$root"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
    cp "$from/muse" "$root/usr/bin/muse"
    cp "$from/completions/muse.bash" "$root/usr/share/bash-completion/completions/muse"
    cp "$from/completions/muse.zsh" "$root/usr/share/zsh/vendor-completions/_muse"
    cp "$from/completions/muse.fish" "$root/usr/share/fish/vendor_completions.d/muse.fish"
    for page in "$from"/man/*; do
        gzip --no-name --best <"$page" >"$root/usr/share/man/man1/${page##*/}.gz"
    done
    cp "$from"/systemd/*.service "$root/usr/lib/systemd/system"
    cp "$from/systemd/muse.toml" "$root/etc/muse"
    gzip --no-name --best <"$from/CHANGELOG.md" >"$root/usr/share/doc/muse/changelog.gz"
    cat "$from/LICENSE-MIT" "$from/LICENSE-APACHE" "$from"/licences/* >"$root/usr/share/doc/muse/copyright"
    echo /etc/muse/muse.toml >"$root/DEBIAN/conffiles"
    (cd "$root" && find etc usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    cat >"$root/DEBIAN/control" <<END
Package: muse
Version: $3
Architecture: amd64
Maintainer: The Muse authors <muse@localhost>
Installed-Size: $(du --apparent-size -sk "$root" | cut -f 1)
Recommends: ca-certificates
Section: games
Priority: optional
Homepage: https://github.com/muse-net/muse
Description: multiplayer networking for games
 Master server, relay, game servers and page of the sample game in one program:
 muse up serves all of it.
END
    find "$root" -print0 | xargs -0 touch --no-dereference --date="@$SOURCE_DATE_EPOCH"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$4" >/dev/null
}

# Writes what the program was built from to $1.
bill() {
    local tools=$CARGO_TARGET_DIR/tools file=bill-of-materials
    if ! PATH=$tools/bin:$PATH cargo cyclonedx --version >/dev/null 2>&1; then
        # Not optimised, for it runs for a second.
        env -u CARGO_ENCODED_RUSTFLAGS -u CFLAGS CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install --quiet --locked --root "$tools" cargo-cyclonedx@0.5.9 || {
            echo "no bill of materials: there is no cargo-cyclonedx"
            return 0
        }
    fi
    # It writes a file for each package of the workspace, beside its manifest.
    PATH=$tools/bin:$PATH cargo cyclonedx --quiet --manifest-path tools/cli/Cargo.toml --format json --spec-version 1.5 --no-build-deps \
        --features "$program_features" --target "$target" --override-filename "$file"
    sed "s#file://$PWD#file:///muse#g" "tools/cli/$file.json" >"$1"
    git ls-files '*Cargo.toml' | sed "s#Cargo.toml\$#$file.json#" | xargs -d '\n' rm -f
}

main
exit
