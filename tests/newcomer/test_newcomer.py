"""The start pages, tried as a newcomer would: in a clean folder, by copying and pasting.

    python3 tests/newcomer/test_newcomer.py [rust|messages|game|rollback|friend|master|bevy|c|unity|browser|operator ...]

Of docs/guide/start-NAME.md every block of `sh` is run, and every program that the page says to put into a file is put there. Where the page then says "It prints" and has a block of `text`,
the last command must have printed these lines; `…` stands for anything. A command that ends in `&` goes on, and what it prints is waited for. Four digits and `…` (`5c1f…`) are an example of a
key, six letters, a hyphen and `…` (`KWXPTR-…`) of a room's code: where they stand later, what was printed is put in, as a reader would. Where a page says `Open http://...`, a browser opens it, and its console is to show what the next block has.

`git clone` gives this very tree, and CARGO_TARGET_DIR (or `target`) is what the clone builds into, so that a second run is quick. Takes minutes the first time, and needs what the pages say:
gcc for c, mono for unity, npm and Chromium (or what CHROMIUM names) for browser.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("rust", "messages", "game", "rollback", "friend", "master", "bevy", "c", "unity", "browser", "operator")
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
SECONDS_MAX = 3600
BACKGROUND_SECONDS_MAX = 1800  # its first build included
BROWSER_SECONDS_MAX = 60
EXAMPLE = r"\b([0-9A-Z]{6}-|[0-9a-f]{4})…"

# `$1` seconds at most until a line of the file `$3` matches `$2`.
WAIT = """wait_for() {
    for ((i = 0; i < $1 * 10; i++)); do
        grep -aPq -- "$2" "$3" && return
        sleep 0.1
    done
    echo "expected $2 but saw:"; cat "$3"; exit 1
}"""


class Block(typing.NamedTuple):
    """A block of code, and the words between the one before and it."""

    language: str
    lines: list
    words: str

    def file(self):
        """The file that it is to be put into."""
        named = re.search(r"[Pp]ut this into `([^`]+)`", self.words)
        return named and named.group(1)

    def address(self):
        """What a browser is to open, to show it."""
        opened = re.search(r"Open (http://[^\s]+)", self.words)
        return opened and opened.group(1)

    def is_printed(self):
        return self.language == "text" and "It prints" in self.words


def blocks(page):
    """The blocks of code of a page."""
    words, language, code = [], None, []
    for line in page.splitlines():
        if language is None and line.startswith("```"):
            language, code = line[3:].split(",")[0], []
        elif line == "```":
            yield Block(language, code, "\n".join(words))
            words, language = [], None
        elif language is None:
            words.append(line)
        else:
            code.append(line)


def steps(page):
    """A shell script that does what the page says."""
    found = list(blocks(page))
    for block, after in zip(found, found[1:] + [None]):
        code = "\n".join(block.lines)
        if block.file():
            file = shlex.quote(block.file())
            yield f"mkdir -p $(dirname {file})"
            yield f"cat >{file} <<'END_OF_PROGRAM'\n{code}\nEND_OF_PROGRAM"
            if re.search(EXAMPLE, code):
                yield f"sed -i -E \"s/{EXAMPLE}/$key/\" {file}"
        elif block.address():
            yield f"{browser()} {shlex.quote(block.address())} >/dev/null 2>\"$HOME/console\" &"
            yield from (wait_for(pattern(line), BROWSER_SECONDS_MAX, "console") for line in block.lines)
        elif block.language == "sh":
            yield from shell(block.lines, after.lines if after and after.is_printed() else [])


def shell(commands, printed):
    """Runs commands, the last of which is to print these lines."""
    *first, last = (re.sub(EXAMPLE, '"$key"', command) for command in commands if command.strip())
    yield from first
    goes_on = last.endswith("&")
    yield f"{last.removesuffix('&')} >\"$HOME/printed\"" + " &" * goes_on if printed else last
    for line in printed:
        yield wait_for(f"^{pattern(line)}$", BACKGROUND_SECONDS_MAX if goes_on else 1, "printed")
        if example := re.search(EXAMPLE, line):
            whole = "[0-9A-Z]{6}-[0-9A-Z]{4}" if example[1].endswith("-") else "[0-9a-f]{64}"
            yield f'key=$(grep -aoE "{whole}" "$HOME/printed" | head -n 1); [ -n "$key" ]'


def wait_for(pattern, seconds, file):
    return f"wait_for {seconds} {shlex.quote(pattern)} \"$HOME/{file}\""


def pattern(line):
    """What matches a line of a page."""
    return ".*".join(re.escape(part) for part in re.sub(EXAMPLE, "…", line).split("…"))


def browser():
    """A browser that writes its console to the standard error."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((name for name in names if name and shutil.which(name)), None)
    assert found, "there is no Chromium; CHROMIUM names one"
    return f"{found} --headless --no-sandbox --disable-gpu --enable-logging=stderr --user-data-dir=\"$HOME/browser\""


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
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        clone(folder)
        (folder / "home").mkdir()
        # The clone is there already.
        script = ["set -e", "git() { [ \"$1\" = clone ] || command git \"$@\"; }", WAIT, *steps(page)]
        home = {"HOME": str(folder / "home"), "CARGO_TARGET_DIR": str(TARGET)}
        for tool in ("cargo", "rustup"):
            home[f"{tool.upper()}_HOME"] = os.environ.get(f"{tool.upper()}_HOME", os.path.expanduser(f"~/.{tool}"))
        log = folder / "log"
        with open(log, "w") as output:
            run = subprocess.Popen(
                ["bash", "-c", "\n".join(script)], cwd=folder, env={**os.environ, **home}, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        try:
            status = run.wait(SECONDS_MAX)
        finally:
            # What the page left running.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
        assert status == 0, log.read_text()[-3000:]
    return len(script) - 3


def main():
    names = sys.argv[1:] or PAGES
    failed = 0
    for name in names:
        try:
            print(f"  ok    {name}: {try_page(name)} steps", flush=True)
        except Exception as error:
            failed += 1
            print(f"  FAIL  {name}: {error}", flush=True)
    print(f"newcomer: {len(names) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
