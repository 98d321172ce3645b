"""The dissectors of tools/wireshark, tried with tshark: every packet of every capture is dissected, none is malformed.

    python3 tests/wireshark/test_wireshark.py FOLDER [MUSE]

FOLDER holds captures of the Muse protocol that tests recorded: sent.pcap, delivered.pcap and keys.txt of the transport's capture test, and
session.pcapng with session.keys of bindings/capi/examples/session. What is not there is skipped, but not all of it. With MUSE, the program, a match of
the sample game is recorded besides: bots play through `muse proxy`. Captures of MUSE-RP v1 and relay v1
are made here, of the datagrams recorded from the original and of every packet that docs/relay-v1.md describes; so are the packets of handshakes
that end before a connection: waiting, refusals, and what client and server do not share.
"""

import contextlib
import json
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/decoder"))
from aead import checksum  # noqa: E402 (the decoder's own)

LUA = ROOT / "tools/wireshark"
SCRIPTS = [argument for name in ("muse", "muse_rp", "muse_relay_v1") for argument in ("-X", f"lua_script:{LUA / name}.lua")]
UDP, TCP = 17, 6


def tshark(capture, *options):
    """What tshark prints of a capture, as lines; what it complains about is an error."""
    command = ["tshark", *SCRIPTS, "-o", "udp.try_heuristic_first:TRUE", "-o", "tcp.try_heuristic_first:TRUE", "-r", str(capture), *options]
    run = subprocess.run(command, capture_output=True, text=True)
    complaints = [line for line in run.stderr.splitlines() if line and "user" not in line and "dangerous" not in line]
    assert run.returncode == 0 and not complaints, complaints
    return run.stdout.splitlines()


def fields(capture, *names, options=()):
    wanted = [argument for name in names for argument in ("-e", name)]
    return [line.split("\t") for line in tshark(capture, *options, "-T", "fields", *wanted)]


def nothing_is_malformed(capture, protocol, options=(), names=()):
    """Checks every packet; gives the fields that are asked for besides."""
    rows = fields(capture, "frame.protocols", "_ws.malformed", "_ws.expert.message", "_ws.lua.error", *names, options=options)
    assert rows, "an empty capture"
    for number, (layers, malformed, expert, error, *_) in enumerate(rows, 1):
        assert not malformed and not error, f"packet {number}: {malformed} {expert} {error}"
        assert "breaks" not in expert and "lengths" not in expert, f"packet {number}: {expert}"
        # A packet that begins a conversation has its layer twice: by the heuristic and by what it found.
        assert set(layers.split(":udp:")[-1].split(":")) == {protocol}, f"packet {number} is {layers}"
    return [row[4:] for row in rows]


def nothing_looks_malformed(capture, options=()):
    """The same of what people see."""
    verbose = "\n".join(tshark(capture, *options, "-V"))
    assert "alformed" not in verbose and "Lua Error" not in verbose


class Pcap:
    """Raw IP packets of datagrams and streams."""

    def __init__(self):
        self.data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
        self.count, self.numbers = 0, {}

    def packet(self, protocol, body, backwards):
        source, target = (b"\xc0\x00\x02\x02", b"\xc0\x00\x02\x01") if backwards else (b"\xc0\x00\x02\x01", b"\xc0\x00\x02\x02")
        header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0) + source + target
        data = header + body
        self.data += struct.pack("<IIII", self.count // 1000, self.count % 1000 * 1000, len(data), len(data)) + data
        self.count += 1

    def udp(self, source, target, payload, backwards=False):
        self.packet(UDP, struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload, backwards)

    def tcp(self, source, target, payload, backwards=False, flags=0x18):
        number = self.numbers.get((source, target), 1)
        heard = self.numbers.get((target, source), 1)
        self.numbers[(source, target)] = number + len(payload) + (flags & 2) // 2
        self.packet(TCP, struct.pack(">HHIIBBHHH", source, target, number, heard, 0x50, flags, 65535, 0, 0) + payload, backwards)

    def save(self, name):
        path = pathlib.Path(tempfile.mkdtemp()) / name
        path.write_bytes(self.data)
        return path


def record_match(muse, folder):
    """Two bots play against each other for a while, through a proxy that loses packets and records all of them."""
    # Secrets are appended, and a file that others can read is refused.
    (folder / "match.keys").unlink(missing_ok=True)
    game = [muse, "game", "--listen", "127.0.0.1:0", "--no-web", "--danger-no-tokens", "--danger-key-log", str(folder / "match.keys")]
    game += ["--mode", "versus", "--players", "2", "--seed", "1", "--versus-seconds", "15"]
    with running(game) as server:
        address, key = re.search(r"listening at (\S+), key (\w+)", server.stdout.readline()).groups()
        proxy = [muse, "proxy", "--listen", "127.0.0.1:0", "--to", address, "--rtt", "40", "--loss", "2"]
        with running([*proxy, "--capture", str(folder / "match.pcapng")]) as line:
            front = re.search(r"127\.0\.0\.1:\d+", line.stdout.readline()).group()
            bots = [muse, "bots", "--count", "2", "--server", front, "--key", key, "--mode", "versus", "--matches", "1", "--seconds", "40"]
            subprocess.run(bots, check=True, capture_output=True, timeout=120)
            line.send_signal(signal.SIGINT)
            line.wait(20)


@contextlib.contextmanager
def running(command):
    """A program that is ended when it is no longer needed."""
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


class Checks:
    def __init__(self, folder, muse):
        self._folder = folder
        self._muse_program = muse

    def _muse(self, capture, keys, unreliable="0"):
        capture, keys = self._folder / capture, self._folder / keys
        if not capture.exists():
            return None
        options = ("-o", f"muse.keys:{keys}", "-o", f"muse.unreliable:{unreliable}")
        rows = nothing_is_malformed(capture, "muse", options, ("muse.kind", "muse.number_full", "muse.payload", "muse.close_code"))
        handshakes = [row[0] for row in rows if row[0]]
        assert {"1", "2", "3", "4"} <= set(handshakes), set(handshakes)
        closed_for = [row for row in rows if not row[0] and not row[1]]
        assert not closed_for, f"{len(closed_for)} packets were not opened"
        assert any(row[2] for row in rows) and any(row[3] for row in rows), "messages and an end"
        return f"{len(rows)} packets, {len(handshakes)} of handshakes, all others opened"

    def packets_as_sent(self):
        outcome = self._muse("sent.pcap", "keys.txt")
        if outcome:
            nothing_looks_malformed(self._folder / "sent.pcap", ("-o", f"muse.keys:{self._folder / 'keys.txt'}"))
        return outcome

    def packets_as_delivered(self):
        return self._muse("delivered.pcap", "keys.txt")

    def the_session_of_the_bindings(self):
        return self._muse("session.pcapng", "session.keys")

    def a_match_of_the_game(self):
        if not self._muse_program:
            return None
        record_match(self._muse_program, self._folder)
        return self._muse("match.pcapng", "match.keys", unreliable="0")

    def packets_without_keys(self):
        capture = self._folder / "sent.pcap"
        if not capture.exists():
            return None
        rows = nothing_is_malformed(capture, "muse", (), ("muse.payload",))
        assert not any(row[0] for row in rows), "nothing is readable"
        return f"{len(rows)} packets"

    def a_wrong_channel_is_seen(self):
        """Malformed packets are called so: without the right preference some are."""
        capture = self._folder / "sent.pcap"
        if not capture.exists():
            return None
        options = ("-o", f"muse.keys:{self._folder / 'keys.txt'}", "-o", "muse.unreliable:1")
        found = [row for row in fields(capture, "_ws.expert.message", options=options) if "breaks" in row[0]]
        assert found
        return f"{len(found)} packets"

    def handshakes_without_a_connection(self):
        """Wait, Refuse, Describe and Description, as docs/handshake.md lays them out."""
        protocol, random, cookie = 0x1122334455667788, bytes(range(16)), bytes(range(20, 40))
        pages = [b"a" * 960, b"b" * 960, b"c" * 5]
        pcap, expected = Pcap(), []

        def packet(kind, body, length, *wanted, backwards=True):
            data = (bytes([kind]) + protocol.to_bytes(8, "little") + body).ljust(length - 8, b"\0")
            pcap.udp(5000, 7777, data + checksum(protocol, bytes(12), b"", data), backwards)
            expected.append([str(kind), *wanted])

        packet(1, struct.pack("<H", 1) + random, 64, "", "", "", backwards=False)
        packet(6, random, 33, "", "", "")
        packet(5, random + b"\x02" + bytes(8), 42, "", "", "")
        for number, page in enumerate(pages):
            question = struct.pack("<H", 1) + random + cookie + struct.pack("<H", number)
            packet(7, question, 1000, str(number), "", "", backwards=False)
            packet(8, random + struct.pack("<HH", number, len(pages)) + page, 37 + len(page), str(number), str(len(pages)), page.hex())
        capture = pcap.save("refused.pcap")
        names = ("muse.kind", "muse.page", "muse.pages", "muse.description")
        rows = nothing_is_malformed(capture, "muse", (), names)
        nothing_looks_malformed(capture)
        assert rows == expected, rows
        asked = [row[0] for row in fields(capture, "muse.cookie", options=("-Y", "muse.kind == 7"))]
        assert asked == [cookie.hex()] * len(pages), asked
        return f"{len(rows)} packets"

    def muse_rp_of_the_original(self):
        pcap, vectors = Pcap(), json.loads((ROOT / "legacy/rp/tests/data/muse-rp.json").read_text())
        messages = [vector for vector in vectors if vector["kind"] == "message" and "src_port" in vector]
        for vector in messages:
            backwards = vector["direction"].startswith("server")
            pcap.udp(vector["src_port"], vector["dst_port"], bytes.fromhex(vector["hex"]), backwards)
        capture = pcap.save("rp.pcap")
        # The last four belong to a connection whose beginning was not recorded.
        decode_as = ("-d", "udp.port==17777,muse_rp")
        nothing_is_malformed(capture, "muse_rp", decode_as)
        nothing_looks_malformed(capture, decode_as)
        rows = fields(capture, "muse_rp.seq", "muse_rp.ack", "muse_rp.flags", "muse_rp.type", options=decode_as)
        found = [row for row in fields(capture, "muse_rp.seq") if row[0]]
        assert len(found) == len(messages) - 4, "the others are recognised"
        for vector, row in zip(messages, rows):
            expected = [vector["fields"][name] for name in ("seq", "ack", "flags", "type")]
            assert [int(value, 0) for value in row] == expected, (vector["name"], row)
        windows = {row[0] for row in fields(capture, "muse_rp.info.window") if row[0]}
        assert {"0", "1000"} <= windows, windows
        return f"{len(messages)} datagrams"

    def relay_v1_datagrams(self):
        pcap, times = Pcap(), []
        for control in (0x00, 0x01, 0x02, 0x03, 0x08, 0x50, 0xF1):
            for data in (b"", b"x" * 20, b"y" * 1421):
                times.append(len(times) * 7)
                header = struct.pack("<HBBIHB", len(data), 32, control, times[-1], len(data), 7)
                pcap.udp(5000, 7777, header + data, len(times) % 2 == 0)
        capture = pcap.save("relay-udp.pcap")
        nothing_is_malformed(capture, "muse_relay")
        nothing_looks_malformed(capture)
        assert [int(row[0]) for row in fields(capture, "muse_relay.time")] == times
        # An address of 0 is nobody's, so this one is not recognised by itself.
        pcap.udp(5000, 7777, struct.pack("<HBBIHB", 0, 0, 8, 99, 0, 0))
        capture = pcap.save("relay-udp.pcap")
        asked = fields(capture, "muse_relay.time", options=("-d", "udp.port==7777,muse_relay"))
        assert [row[0] for row in asked][-1] == "99" and fields(capture, "muse_relay.time")[-1] == [""]
        return f"{len(times)} datagrams"

    def relay_v1_streams(self):
        packets = [(control, data) for control in (0x00, 0x11, 0x22, 0x03, 0x04) for data in (b"", b"\x07", b"\x07" + b"z" * 3000)]
        stream = b"".join(struct.pack("<HBH", len(data), control, len(data)) + data for control, data in packets)
        pcap = Pcap()
        pcap.tcp(5000, 7777, b"", False, 0x02)
        pcap.tcp(7777, 5000, b"", True, 0x12)
        pcap.tcp(7777, 5000, bytes.fromhex("010000010007"), True)
        at, size = 0, 1
        while at < len(stream):
            pcap.tcp(5000, 7777, stream[at:at + size])
            at, size = at + size, size * 3 % 1400 + 1
        capture = pcap.save("relay-tcp.pcap")
        rows = fields(capture, "muse_relay.control", "_ws.malformed", "_ws.expert.message", "_ws.lua.error")
        controls = [int(value, 16) for row in rows for value in row[0].split(",") if value]
        assert controls == [0] + [control for control, _ in packets], controls
        assert not any(row[1] or row[3] or "lengths" in row[2] for row in rows), rows
        return f"{len(controls)} packets in pieces"


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/tmp/capture")
    checks = Checks(folder, sys.argv[2] if len(sys.argv) > 2 else None)
    tests = [getattr(checks, name) for name in vars(Checks) if not name.startswith("_")]
    failed = passed = skipped = 0
    for test in tests:
        try:
            outcome = test()
            passed += outcome is not None
            skipped += outcome is None
            print(f"  {'ok   ' if outcome else 'none '} {test.__name__}: {outcome or 'no such capture'}")
        except Exception as error:
            failed += 1
            print(f"  FAIL  {test.__name__}: {error}")
            if not isinstance(error, AssertionError):
                traceback.print_exc()
    # Without a single capture of the Muse protocol nothing of it was tried.
    if not (folder / "sent.pcap").exists() and not (folder / "session.pcapng").exists():
        failed += 1
        print(f"  FAIL  no capture of the Muse protocol in {folder}")
    print(f"wireshark: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
