"""Answers questions of the scripts about the packages of the workspace.

    workspace.py features [--without PREFIX] [PACKAGE ...]   their features, those of all packages by default, as cargo's --features takes them
    workspace.py touched < FILES                             the packages that these files belong to, one `changed NAME` or `dependent NAME` a line

A file that belongs to no package is printed as `other PATH`; one that changes every package as `all PATH`.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What every build depends on.
OF_ALL = {"Cargo.toml", "Cargo.lock", "rust-toolchain.toml"}


def packages():
    """The packages of the workspace as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)["packages"]


def features(all_packages, names, without):
    """The features of packages, without those whose name begins so."""
    return [
        f"{package['name']}/{feature}"
        for package in all_packages
        if not names or package["name"] in names
        for feature in sorted(package["features"])
        if feature != "default" and not (without and feature.startswith(without))
    ]


def folders(package):
    """The folders that are a package's: its own, and those of tests that lie elsewhere."""
    own = pathlib.Path(package["manifest_path"]).parent
    sources = [pathlib.Path(target["src_path"]).resolve().parent for target in package["targets"]]
    return {own, *(folder for folder in sources if own not in folder.parents)}


def owner(path, all_packages):
    """The package that a file belongs to: the one with the innermost folder."""
    found = [
        (len(folder.parts), package["name"])
        for package in all_packages
        for folder in folders(package)
        if folder in (ROOT / path).parents
    ]
    return max(found)[1] if found else None


def touched(all_packages, paths):
    """Lines that say what the files belong to, and which packages depend on those directly."""
    changed, lines = set(), []
    for path in paths:
        name = owner(path, all_packages)
        if path in OF_ALL:
            lines.append(f"all {path}")
        elif name:
            changed.add(name)
        else:
            lines.append(f"other {path}")
    dependents = {
        package["name"]
        for package in all_packages
        if package["name"] not in changed and any(dependency["name"] in changed for dependency in package["dependencies"])
    }
    return lines + [f"changed {name}" for name in sorted(changed)] + [f"dependent {name}" for name in sorted(dependents)]


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["features"]:
        names, without = arguments[1:], None
        if names[:1] == ["--without"]:
            without, names = names[1], names[2:]
        print(",".join(features(packages(), names, without)))
    elif arguments == ["touched"]:
        paths = [line.strip() for line in sys.stdin if line.strip()]
        print("\n".join(touched(packages(), paths)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
