"""The start pages, tried as a newcomer would: in a clean folder, by copying and pasting.

    python3 tests/newcomer/test_newcomer.py [rust|bevy|c|unity ...]

Of docs/guide/start-NAME.md every block of `sh` is run, and every program that the page says to put into a file is put there. In such a block a line
that is no command is what the command before it prints; `…` stands for anything. `git clone` gives this very tree, and CARGO_TARGET_DIR (or `target`) is what the clone
builds into, so that a second run is quick. Takes minutes the first time, and needs what the pages say: gcc for c, mono for unity.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("rust", "bevy", "c", "unity")
COMMANDS = ("cargo", "cd", "gcc", "git", "mcs", "npm", "scripts/")
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def blocks(page):
    """The page's blocks of code: language, text, and the file that the words before it name."""
    words, language, code = [], None, []
    for line in page.splitlines():
        if language is None and line.startswith("```"):
            language, code = line[3:].split(",")[0], []
        elif line == "```":
            named = re.search(r"[Pp]ut this into `([^`]+)`", "\n".join(words))
            yield language, "\n".join(code) + "\n", named.group(1) if named else None
            words, language = [], None
        elif language is None:
            words.append(line)
        else:
            code.append(line)


def is_command(line):
    first = line.split("&&")[0].split()[0]
    return first.startswith(COMMANDS) or "=" in first


def steps(page):
    """A shell script that does what the page says."""
    for language, code, file in blocks(page):
        if file:
            yield f"mkdir -p {shlex.quote(str(pathlib.Path(file).parent))}"
            yield f"cat >{shlex.quote(file)} <<'END_OF_PROGRAM'\n{code}END_OF_PROGRAM"
        elif language == "sh":
            yield from shell(code)


def shell(code):
    lines = [line for line in code.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if not is_command(line):
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            yield f"grep -Pq -- {shlex.quote('^' + pattern + '$')} \"$HOME/printed\" || {{ echo expected {shlex.quote(line)} but saw:; cat \"$HOME/printed\"; exit 1; }}"
        elif index + 1 < len(lines) and not is_command(lines[index + 1]):
            yield f"{line} >\"$HOME/printed\""
        else:
            yield line


def clone(folder):
    """This tree as it would be after cloning, but for where it builds to."""
    tree = folder / "muse"
    tree.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in ("target", ".git"):
            (tree / entry.name).symlink_to(entry)
    TARGET.mkdir(parents=True, exist_ok=True)
    (tree / "target").symlink_to(TARGET)


def try_page(name):
    page = (ROOT / f"docs/guide/start-{name}.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        clone(folder)
        (folder / "home").mkdir()
        # The clone is there already.
        script = ["set -e", "git() { [ \"$1\" = clone ] || command git \"$@\"; }", *steps(page)]
        home = {"HOME": str(folder / "home"), "CARGO_TARGET_DIR": str(TARGET)}
        for tool in ("cargo", "rustup"):
            home[f"{tool.upper()}_HOME"] = os.environ.get(f"{tool.upper()}_HOME", os.path.expanduser(f"~/.{tool}"))
        run = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env={**os.environ, **home}, capture_output=True, text=True, timeout=1800)
        assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    return len(script) - 2


def main():
    names = sys.argv[1:] or PAGES
    failed = 0
    for name in names:
        try:
            print(f"  ok    {name}: {try_page(name)} steps")
        except Exception as error:
            failed += 1
            print(f"  FAIL  {name}: {error}")
    print(f"newcomer: {len(names) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
