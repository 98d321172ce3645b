"""The independent implementation against the vectors and against `muse rp`, both ways, with and without loss.

    python3 tests/rp/test_rp.py target/debug/muse
"""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import muse_rp as rp

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSE = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/debug/muse")
WINDOW, PERCENT, COUNT = 10, 80, 300
LINE = re.compile(r"received channel=(reliable|partial) type=(\d+) seq=(\d+) len=(\d+) data=([0-9a-f]*)$")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def vectors(kind):
    data = json.loads((ROOT / "legacy/rp/tests/data/muse-rp.json").read_text())
    return [vector for vector in data if vector["kind"] == kind]


def test_vectors():
    for vector in vectors("message"):
        fields = vector["fields"]
        seq, ack, flags, kind, payload = rp.decode(bytes.fromhex(vector["hex"]))
        expected = tuple(fields[name] for name in ("seq", "ack", "flags", "type", "payload"))
        check((seq, ack, flags, kind, payload.hex()) == expected, vector["name"])
        check(rp.encode(seq, ack, flags, kind, payload).hex() == vector["hex"], vector["name"])
    for trace in vectors("partial_trace"):
        receiver = rp.Partial(trace["window"], trace["reliability_percent"], trace["start_ack"])
        follow(trace, receiver, trace["correct"])
    for trace in vectors("reliable_trace"):
        follow(trace, rp.Reliable(trace["window"], trace["start_ack"]), trace["csharp"])


def follow(trace, receiver, steps):
    for step in steps:
        delivered = [number for number, _ in receiver.receive(step["arrive"], None)]
        check(delivered == step["delivered"] and receiver.last == step["ack"], (trace["name"], step))


def serve(*flags):
    command = [MUSE, "rp", "serve", "--listen", "127.0.0.1", "--reliable-port", "0", "--partial-port", "0"]
    command += ["--window", str(WINDOW), "--percent", str(PERCENT), *flags]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = server.stderr.readline()
    found = re.search(r"reliable port (\d+), partial port (\d+)", line)
    check(found, line)
    return server, [int(port) for port in found.groups()]


def lines(output):
    parsed = []
    for line in output.splitlines():
        found = LINE.match(line)
        check(found or line in ("connected", "disconnected"), line)
        if found:
            channel, kind, seq, length, data = found.groups()
            check(int(length) * 2 == len(data), line)
            parsed.append((channel, int(kind), int(seq), bytes.fromhex(data)))
    return parsed


def numbers(payloads):
    return [int.from_bytes(payload[:4], "little") for payload in payloads]


def check_partial(seen, slots_before):
    """Ascending, and at most the promised losses in each aligned window."""
    check(seen == sorted(set(seen)), seen)
    check(seen and seen[-1] == COUNT - 1, "everything is settled")
    allowed = WINDOW * (100 - PERCENT) // 100
    lost = {}
    for missing in set(range(COUNT)) - set(seen):
        slot = (missing + slots_before) // WINDOW
        lost[slot] = lost.get(slot, 0) + 1
    check(all(count <= allowed for count in lost.values()), lost)


def client_against_serve(loss, seed, joins_twice=False):
    server, ports = serve("--echo")
    client = rp.Client("127.0.0.1", [0, 0], loss, seed)
    client.joins_twice = joins_twice
    try:
        check(client.connect(("127.0.0.1", ports[0])), "connects")
        check(list(client.offer[:6]) == [*ports, WINDOW, PERCENT, *client.ports], client.offer)
        for number in range(COUNT):
            for channel in (rp.RELIABLE, rp.PARTIAL):
                client.send(channel, 500 + channel, number.to_bytes(4, "little") + b"payload")
        partial = lambda: [payload for channel, _, _, payload in client.received if channel == rp.PARTIAL]
        done = lambda: client.idle() and echoed(client) == COUNT
        check(client.run(done, 60), "all acknowledged, all reliable ones echoed")
        check(client.run(lambda: client.pongs > 0, 10), "pings are answered")
        check(min(client.pong_delays) >= 0.002, client.pong_delays)
        # What was echoed on the partial channel may itself be skipped: only the order is sure.
        check(numbers(partial()) == sorted(set(numbers(partial()))), "echoes in order")
        reliable = [payload for channel, _, _, payload in client.received if channel == rp.RELIABLE]
        check(numbers(reliable) == list(range(COUNT)), "reliable echoes")
        client.end()
        check(server.stdout.readline() == "connected\n", "the first line")
        output = ""
        while not output.endswith("disconnected\n"):
            line = server.stdout.readline()
            check(line, output[-300:])
            output += line
        seen = lines(output)
        check(numbers([data for channel, kind, _, data in seen if (channel, kind) == ("reliable", 500)]) == list(range(COUNT)), "reliable")
        check_partial(numbers([data for channel, kind, _, data in seen if (channel, kind) == ("partial", 501)]), 0)
        first = (client.s + 1) % rp.MODULUS
        check(next(seq for channel, _, seq, _ in seen if channel == "reliable") == first, "seq is the number on the wire")
    finally:
        client.close()
        server.kill()
        server.wait()


def echoed(client):
    return sum(channel == rp.RELIABLE for channel, _, _, _ in client.received)


def send_against_server(loss, seed, channel):
    server = rp.Server("127.0.0.1", WINDOW, PERCENT, loss, seed)
    command = [MUSE, "rp", "send", "--to", f"127.0.0.1:{server.ports[0]}", "--channel", channel]
    command += ["--type", "77", "--count", str(COUNT), "--size", "64", "--interval-ms", "1", "--linger-ms", "1000"]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        check(server.run(lambda: server.connected, 30), "connects")
        for number in range(20):
            server.send(rp.RELIABLE, 9, number.to_bytes(4, "little"))
        for number in range(COUNT):
            server.send(rp.PARTIAL, 10, number.to_bytes(4, "little"))
        check(server.run(lambda: sender.poll() is not None, 60), "ends by itself")
        output, errors = sender.communicate()
        check(sender.returncode == 0, (output[-300:], errors))
        check(output.startswith("connected\n") and output.endswith("disconnected\n"), output[-300:])
        check(numbers([data for _, kind, _, data in lines(output) if kind == 9]) == list(range(20)), "from the server")
        # Step 4 is the first slot of the client's first window.
        check_partial(numbers([data for _, kind, _, data in lines(output) if kind == 10]), 1)
        seen = numbers([payload for _, _, kind, payload in server.received if kind == 77])
        check(all(len(payload) == 64 for _, _, _, payload in server.received), "the size")
        if channel == "reliable":
            check(seen == list(range(COUNT)), "reliable")
        else:
            check_partial(seen, 0)
    finally:
        server.close()
        sender.kill()
        sender.wait()


TESTS = {
    "the vectors": test_vectors,
    "client against muse rp serve": lambda: client_against_serve(0.0, 1),
    "client against muse rp serve, 10 % lost": lambda: client_against_serve(0.1, 2),
    "client that joins again with other numbers": lambda: client_against_serve(0.0, 6, True),
    "client that joins again with other numbers, 10 % lost": lambda: client_against_serve(0.1, 7, True),
    "muse rp send against server, reliable": lambda: send_against_server(0.0, 3, "reliable"),
    "muse rp send against server, reliable, 10 % lost": lambda: send_against_server(0.1, 4, "reliable"),
    "muse rp send against server, partial, 10 % lost": lambda: send_against_server(0.1, 5, "partial"),
}


def main():
    failed = 0
    for name, test in TESTS.items():
        try:
            test()
            print(f"{name}: ok")
        except AssertionError as error:
            failed += 1
            print(f"{name}: FAILED: {error}")
    print(f"rp: {len(TESTS) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
