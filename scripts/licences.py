#!/usr/bin/env python3
"""Prints the licences of the crates that are part of the program: scripts/licences.py TARGET FEATURES.

Crates with the same text share it. A crate that brings no text is named with its licence, whose text another crate brings.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("licen", "copying", "notice", "copyright")


def main():
    target, features = sys.argv[1:]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", "tools/cli/Cargo.toml"]
    metadata = json.loads(subprocess.check_output([*command, "--filter-platform", target, "--features", features]))
    texts = {}
    for package in sorted(linked(metadata), key=lambda it: (it["name"], it["version"])):
        if package["source"] is None:
            continue
        title = f"{package['name']} {package['version']} ({package['license']})"
        for text in licences(package) or [""]:
            texts.setdefault(text, []).append(title)
    for text, titles in sorted(texts.items(), key=lambda it: it[1]):
        print("=" * 80, *titles, "", text, sep="\n")


def linked(metadata):
    """The packages that the program is linked from: not those of tests and of the build."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    found, left = set(), [metadata["resolve"]["root"]]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for dependency in nodes[name]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                left.append(dependency["pkg"])
    return [packages[name] for name in found]


def licences(package):
    """The texts that a package brings, without differences in white space."""
    folder = Path(package["manifest_path"]).parent
    files = (path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(NAMES))
    return ["\n".join(line.rstrip() for line in path.read_text(errors="replace").strip().splitlines()) for path in sorted(files)]


main()
