#!/usr/bin/env python3
"""Tries a tarball of `make dist` in a root file system that holds nothing else; see dist-check.sh, which runs it."""

import hashlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Enters the root $1 with a /proc of its own, and runs the rest there.
ENTER = """
mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && root=$1 && shift && exec chroot "$root" "$@"
"""
COLD_STARTS = 7
MB = 1_000_000


def main():
    tarball = Path(sys.argv[1])
    check_sums(tarball.parent)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("dev", "proc", "tmp"):
            (root / name).mkdir()
        (root / "dev/null").touch()
        unpack = ["tar", "--extract", "--file", str(tarball), "--directory", folder]
        subprocess.run(unpack, check=True)
        (program,) = root.glob("muse-*/muse")
        check_parts(program.parent)
        check_package(tarball.parent, program, root / "package")
        inside = "/" + str(program.relative_to(root))
        copy_libraries(program, root)
        options = f"{Path(inside).parent}/systemd/muse.toml"
        subprocess.run(bare(root, [inside, "config", "check", options]), check=True)
        figures = [
            ("program_mb", program.stat().st_size / MB, 28),
            ("tarball_mb", tarball.stat().st_size / MB, 12),
            ("cold_start_ms", cold_start(root, inside), 300),
            ("download_to_match_s", match(unpack, root, inside), 15),
        ]
    short = False
    for name, value, limit in figures:
        short |= value > limit
        print(name, round(value, 1), limit, "short" if value > limit else "ok")
    sys.exit(3 if short else 0)


def check_sums(folder):
    """Compares every file with what SHA256SUMS says, if it is there."""
    sums = folder / "SHA256SUMS"
    for line in sums.read_text().splitlines() if sums.exists() else []:
        wanted, name = line.split(maxsplit=1)
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert found == wanted, f"{name} is not what SHA256SUMS says"


def check_parts(folder):
    parts = ("LICENSE-MIT", "completions/muse.bash", "man/muse.1", "man/muse-up.1", "systemd/muse-master.service", "licences/crates.txt")
    missing = [name for name in parts if not (folder / name).stat().st_size]
    assert not missing, f"empty: {missing}"


def check_package(folder, program, place):
    """Unpacks Debian's package, if it is there: it has the same program, where it belongs."""
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(place)], check=True)
        assert (place / "usr/bin/muse").read_bytes() == program.read_bytes(), "the package has another program"
        for name in ("lib/systemd/system/muse-master.service", "share/man/man1/muse-up.1.gz", "share/bash-completion/completions/muse"):
            assert (place / "usr" / name).stat().st_size, name


def copy_libraries(program, root):
    """Copies the libraries that the program needs, which one of `make dist` does not."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    for path in re.findall(r"(/\S+) \(0x", listed):
        print("needs", path)
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])


def bare(root, command):
    """A command line that runs another one in a root file system."""
    return ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", str(root), *command]


def up(program, data):
    return [program, "up", "--port", "0", "--relay-port", "0", "--first-port", "25700", "--bots-after-seconds", "0", "--data", data]


def cold_start(root, program):
    """Milliseconds from the start of `muse up` without any data to the line that says where it is."""
    times = []
    for index in range(COLD_STARTS):
        command = bare(root, up(program, f"/tmp/cold-{index}"))
        begin = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline()
            times.append(1_000 * (time.monotonic() - begin))
            process.kill()
            # Until it has ended: it would complain about a pipe that nobody reads.
            process.communicate()
        assert line.startswith("Biobot is at http://"), line
    print("cold starts:", *(f"{it:.0f}" for it in times), "ms")
    return statistics.median(times)


def match(unpack, root, program):
    """Seconds from the unpacking until two browsers play together."""
    commands = ["sh", "-c", f"{shlex.join(unpack)} && exec \"$@\"", "sh", *bare(root, up(program, "/tmp/match"))]
    node = ["node", "game/web/tests/download.mjs", *commands]
    output = subprocess.run(node, check=True, stdout=subprocess.PIPE, text=True, timeout=200).stdout
    print(*output.splitlines(), sep=", ")
    return int(re.search(r"^plays (\d+)$", output, re.MULTILINE).group(1)) / 1_000


main()
