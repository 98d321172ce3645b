"""Reads a recorded session with nothing but the standard and the key log, and checks that everything adds up.

    python3 tests/decoder/test_decoder.py FOLDER

FOLDER holds sent.pcap, delivered.pcap, keys.txt and session.txt, as `crates/transport/tests/capture.rs` writes them.
"""

import collections
import pathlib
import re
import struct
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True

from aead import Epoch
from channels import Receiver
from protocol import (FIRST_NUMBER, HEADER_LEN, FRAGMENT_LEN, Header, Rebuilder, add, coefficient, expand, parse_content,
                      parse_section, scale, symbol_of)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIDES = ("client", "server")
OTHER = {"client": "server", "server": "client"}


def read_pcap(path):
    """Time in microseconds and UDP payload of each record."""
    data, at = path.read_bytes(), 24
    assert data[:4] == b"\xd4\xc3\xb2\xa1" and data[20:24] == b"\x65\0\0\0", "raw IP, little-endian, microseconds"
    records = []
    while at < len(data):
        seconds, micros, size, _ = struct.unpack_from("<4I", data, at)
        packet = data[at + 16:at + 16 + size]
        header = 4 * (packet[0] & 15) if packet[0] >> 4 == 4 else 40
        records.append((seconds * 1_000_000 + micros, packet[header + 8:]))
        at += 16 + size
    return records


class Session:
    """What the session says of itself."""

    def __init__(self, folder):
        self.channels, self.unreliable = {}, set()
        self.sent = {side: collections.defaultdict(dict) for side in SIDES}
        self.received = {side: collections.defaultdict(list) for side in SIDES}
        self.stale = {side: collections.Counter() for side in SIDES}
        for line in (folder / "session.txt").read_text().splitlines():
            words = line.split()
            if words[0] == "protocol":
                self.protocol = int(words[1], 16)
            elif words[0] == "channel":
                self.channels[int(words[1])] = (words[2], *map(int, words[3:]))
                if words[2] == "unreliable":
                    self.unreliable.add(int(words[1]))
            elif words[0] == "sent":
                self.sent[words[1]][int(words[2])][int(words[3])] = bytes.fromhex(words[4])
            elif words[0] == "stale":
                self.stale[words[1]][int(words[2])] = int(words[3])
            elif words[0] == "received":
                self.received[words[1]][int(words[2])].append(bytes.fromhex(words[4]))
        self.keys = {}
        for line in (folder / "keys.txt").read_text().splitlines():
            label, connection, suite, secret = line.split()
            side = label.removeprefix("MUSE_").lower()
            epoch = Epoch(int(suite), bytes.fromhex(secret), self.protocol)
            self.keys[side] = (int(connection, 16), epoch)


class Direction:
    """The packets that one side sent, in order."""

    def __init__(self, connection, epoch):
        self.connection, self.epochs, self.phase = connection, [epoch], 0
        self.highest, self.left_out = FIRST_NUMBER - 1, 0
        self.packets = []  # (time, Packet)
        self.by_bytes = {}

    def open(self, header, datagram):
        number = expand(header.number_low, self.highest)
        if header.phase != len(self.epochs) - 1 & 1:
            self.epochs.append(self.epochs[-1].next())
        content = self.epochs[-1].open(number, datagram[:HEADER_LEN], datagram[HEADER_LEN:])
        return number, content


def read_sent(folder, session):
    """Opens and parses everything that was sent; every data packet must open."""
    ways = {side: Direction(*session.keys[side]) for side in SIDES}
    handshake = 0
    for time, datagram in read_pcap(folder / "sent.pcap"):
        if not datagram[0] & 0x80:
            handshake += 1
            continue
        header = Header.parse(datagram)
        assert header, f"a datagram at {time} us is neither handshake nor data"
        for side, way in ways.items():
            if header.connection != way.connection:
                continue
            number, content = way.open(header, datagram)
            if content is not None:
                # Now and then one number is left out, never two in a row and never soon again.
                if number == way.highest + 2:
                    assert number - way.left_out > 128, f"{side} left out {number - 1} soon after {way.left_out}"
                    way.left_out = number - 1
                else:
                    assert number == way.highest + 1, f"{side} sent packet {number} after {way.highest}"
                way.highest = number
                packet = parse_content(header, number, content, ways[OTHER[side]].highest, session.unreliable)
                way.packets.append((time, packet))
                way.by_bytes[datagram] = packet
                break
        else:
            raise AssertionError(f"a packet at {time} us does not open")
    assert handshake >= 4, "Hello, Cookie, Connect, Accept"
    return ways


class Arrivals:
    """What one side received: an independent receiver, fed with the delivered packets."""

    def __init__(self, session):
        self.receivers = {index: Receiver(*how) for index, how in session.channels.items()}
        self.unreliable = session.unreliable
        self.rebuilder, self.rebuilt_at, self.arrived_at = Rebuilder(), {}, {}
        self.closed = None

    def packet(self, time, packet):
        if packet.number in self.arrived_at or self.closed:
            return
        self.arrived_at[packet.number] = time
        for frame in packet.frames:
            if frame[0] == "message":
                self.receivers[frame[1].channel].message(frame[1])
            elif frame[0] == "skip":
                self.receivers[frame[1]].skip(frame[2])
            elif frame[0] == "parity":
                self._rebuilt(time, self.rebuilder.parity(frame[1]))
            elif frame[0] == "close":
                self.closed = frame[1:]
        if packet.section is not None:
            for message in packet.section_messages:
                self.receivers[message.channel].message(message)
            self._rebuilt(time, self.rebuilder.section(packet.number, packet.section))

    def _rebuilt(self, time, sections):
        for number, section in sections:
            if number in self.arrived_at:
                continue
            self.rebuilt_at[number] = time
            for message in parse_section(section, self.unreliable):
                self.receivers[message.channel].message(message)


def read_delivered(folder, session, ways):
    arrivals = {side: Arrivals(session) for side in SIDES}
    for time, datagram in read_pcap(folder / "delivered.pcap"):
        for side, way in ways.items():
            if datagram in way.by_bytes:
                arrivals[OTHER[side]].packet(time, way.by_bytes[datagram])
    return arrivals


class Checks:
    """Each method is one check."""

    def __init__(self, folder):
        self.session = Session(folder)
        self.ways = read_sent(folder, self.session)
        self.arrivals = read_delivered(folder, self.session, self.ways)

    def all_packets_open_and_every_frame_occurs(self):
        kinds = collections.Counter()
        for way in self.ways.values():
            for _, packet in way.packets:
                kinds.update(frame[0] for frame in packet.frames)
                kinds["section"] += packet.section is not None
                kinds["section alone"] += packet.header.section
                kinds["fragment"] += any(f[0] == "message" and f[1].index is not None for f in packet.frames)
        expected = ("ping", "close", "path challenge", "path response", "parity", "section", "section alone", "skip",
                    "progress", "message", "fragment")
        missing = [kind for kind in expected if not kinds[kind]]
        assert not missing, f"never seen: {missing}"
        total = sum(len(way.packets) for way in self.ways.values())
        renewals = [len(way.epochs) - 1 for way in self.ways.values()]
        assert min(renewals) >= 2, f"keys renewed {renewals} times"
        return f"{total} packets; {sum(renewals)} renewals, " + ", ".join(f"{kinds[kind]} {kind}" for kind in expected)

    def acknowledgements_tell_the_truth(self):
        blocks = 0
        for side in SIDES:
            arrived, rebuilt = self.arrivals[side].arrived_at, self.arrivals[side].rebuilt_at
            for time, packet in self.ways[side].packets:
                acks = packet.acks
                if acks is None:
                    continue
                blocks += 1
                for number in acks.arrived:
                    assert arrived.get(number, time + 1) <= time, f"{side} at {time} acknowledges {number}"
                for number in acks.rebuilt:
                    assert rebuilt.get(number, time + 1) <= time, f"{side} at {time} says it rebuilt {number}"
        assert blocks > 500
        return f"{blocks} blocks"

    def every_block_covers_33_packets(self):
        full = 0
        for side in SIDES:
            arrived = self.arrivals[side].arrived_at
            for time, packet in self.ways[side].packets:
                before = [n for n, at in arrived.items() if at < time]
                if packet.acks is None:
                    assert not before, f"{side} at {time} acknowledges nothing"
                    continue
                newest = packet.acks.newest
                assert newest >= max(before, default=0), f"{side} at {time} keeps silent about the newest"
                near = {n for n in before if newest - 32 <= n <= newest}
                assert near <= packet.acks.arrived, f"{side} at {time} leaves out {near - packet.acks.arrived}"
                full += newest - 32 >= FIRST_NUMBER
        assert full > 500, f"only {full} blocks"
        return f"{full} blocks tell what became of the newest 33 packets"

    def messages_on_the_wire_are_what_was_sent(self):
        pieces = 0
        for side in SIDES:
            seen = collections.defaultdict(dict)
            whole_unreliable = collections.Counter()
            for _, packet in self.ways[side].packets:
                messages = [frame[1] for frame in packet.frames if frame[0] == "message"] + packet.section_messages
                for message in messages:
                    pieces += 1
                    if message.number_low is None:
                        whole_unreliable[message.payload] += 1
                        continue
                    sent = self.session.sent[side][message.channel]
                    number = expand(message.number_low, max(seen[message.channel], default=FIRST_NUMBER))
                    start = (message.index or 0) * FRAGMENT_LEN
                    expected = sent[number][start:start + FRAGMENT_LEN]
                    assert message.payload == expected, f"{side}, channel {message.channel}, message {number}"
                    seen[message.channel].setdefault(number, set()).add(message.index)
            for channel in self.session.unreliable:
                sent = self.session.sent[side][channel]
                short = collections.Counter(m for m in sent.values() if len(m) <= FRAGMENT_LEN)
                long = {number for number, message in sent.items() if len(message) > FRAGMENT_LEN}
                assert not whole_unreliable - short, f"{side}: unreliable messages sent twice"
                # What congestion held back for too long was dropped before it was sent.
                unsent = (short - whole_unreliable).total() + len(long - set(seen[channel]))
                assert unsent == self.session.stale[side][channel], f"{side}: {unsent} unreliable messages never sent"
        return f"{pieces} messages and fragments"

    def every_channel_delivers_as_it_promises(self):
        count = 0
        for side in SIDES:
            for channel, (delivery, *_) in self.session.channels.items():
                ours = self.arrivals[side].receivers[channel].delivered
                theirs = self.session.received[side][channel]
                if delivery in ("unreliable", "unordered"):
                    ours, theirs = sorted(ours), sorted(theirs)
                assert ours == theirs, (f"{side}, channel {channel} ({delivery}): the decoder delivers {len(ours)} messages, "
                                        f"the session {len(theirs)}")
                count += len(ours)
        return f"{count} messages delivered"

    def promises_hold(self):
        for side in SIDES:
            for channel, (delivery, *_) in self.session.channels.items():
                receiver = self.arrivals[side].receivers[channel]
                sent = self.session.sent[OTHER[side]][channel]
                got = collections.Counter(receiver.delivered)
                assert all(count == 1 for count in got.values()), f"{side}, channel {channel}: something came twice"
                if delivery == "unordered":
                    assert set(got) == set(sent.values()), f"{side}, channel {channel}: not everything came"
                elif delivery == "newest":
                    assert receiver.delivered[-1] == sent[max(sent)], f"{side}, channel {channel}: not the newest"
                elif delivery == "partial":
                    windows = collections.Counter((n - FIRST_NUMBER) // receiver.window for n in receiver.lost)
                    assert max(windows.values(), default=0) <= receiver.losses, f"{side}: {windows}"
                    assert receiver.next == max(sent) + 1, f"{side}: the end of the stream is missing"
                if delivery in ("ordered", "newest", "sequenced", "partial"):
                    order = {payload: number for number, payload in sent.items()}
                    numbers = [order[payload] for payload in receiver.delivered]
                    assert numbers == sorted(numbers), f"{side}, channel {channel}: out of order"
        return "once, in order, within the promised losses"

    def parity_is_the_sum_that_the_standard_says(self):
        count = 0
        for side in SIDES:
            sections = {}
            for _, packet in self.ways[side].packets:
                for frame in packet.frames:
                    if frame[0] != "parity":
                        continue
                    total = b""
                    for source in frame[1].covered:
                        total = add(total, scale(coefficient(packet.number, source), symbol_of(sections[source])))
                    assert total == frame[1].symbol, f"{side}: parity in packet {packet.number}"
                    count += 1
                if packet.section is not None:
                    sections[packet.number] = packet.section
        assert count > 100
        return f"{count} parity frames"

    def lost_sections_come_back(self):
        count = 0
        for side in SIDES:
            sections = {packet.number: packet.section for _, packet in self.ways[OTHER[side]].packets}
            for number in self.arrivals[side].rebuilt_at:
                assert self.arrivals[side].rebuilder.known[number] == sections[number]
                count += 1
        assert count > 20, f"only {count}"
        return f"{count} sections rebuilt"

    def both_sides_close(self):
        assert self.arrivals["server"].closed == (7, "well played"), self.arrivals["server"].closed
        assert self.arrivals["client"].closed == (0, ""), self.arrivals["client"].closed
        return "7, well played"


def vectors_of_the_handshake_page():
    """The packets in docs/handshake.md open, in both phases."""
    suites, count = {"Aes128Gcm": 1, "ChaCha20Poly1305": 2, "Null": 4}, 0
    text = (ROOT / "docs/handshake.md").read_text()
    for name, phase, number, sealed in re.findall(r"^    (\w+) ([01]) (\d+) ([0-9a-f]+)$", text, re.MULTILINE):
        number = int(number)
        epoch = Epoch(suites[name], bytes(range(32)), 0x1122334455667788)
        epoch = epoch.next() if phase == "1" else epoch
        header = bytes([0x80 + int(phase), 1, 2, 3, 4]) + (number & 0xFFFF).to_bytes(2, "little")
        sealed = bytes.fromhex(sealed)
        assert epoch.open(number, header, sealed) == b"Muse", f"{name} {number}"
        assert epoch.open(number + 1, header, sealed) is None, "with another number it must not open"
        count += 1
    assert count == 9
    return f"{count} packets"


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/tmp/capture")
    checks = Checks(folder)
    tests = [vectors_of_the_handshake_page]
    tests += [getattr(checks, name) for name in vars(Checks) if not name.startswith("_")]
    failed = 0
    for test in tests:
        try:
            print(f"  ok    {test.__name__}: {test()}")
        except Exception as error:
            failed += 1
            print(f"  FAIL  {test.__name__}: {error}")
            if not isinstance(error, AssertionError):
                traceback.print_exc()
    print(f"decoder: {len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
