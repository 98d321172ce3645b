"""Reads data packets: header, acknowledgement block, frames, parity. From `docs/protocol.md` and decision 0003 alone."""

import struct
from dataclasses import dataclass, field

FIRST_NUMBER = 65_280
FRAGMENT_LEN = 1_024
HEADER_LEN = 7


class Malformed(Exception):
    """The packet breaks a rule of the standard."""


def expand(low, near):
    """The number nearest to `near` with these low 16 bits; of two equally near ones the larger."""
    candidate = (near & ~0xFFFF) | low
    options = [n for n in (candidate - 0x10000, candidate, candidate + 0x10000) if n >= 0]
    return min(options, key=lambda n: (abs(n - near), -n))


class Reader:
    """Takes bytes from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, count):
        if count > self.left():
            raise Malformed("cut short")
        self.at += count
        return self.data[self.at - count:self.at]

    def rest(self):
        return self.take(self.left())

    def integer(self, count):
        return int.from_bytes(self.take(count), "little")

    def varint(self):
        if not self.left():
            raise Malformed("cut short")
        return self.integer(1 << (self.data[self.at] & 3)) >> 2


@dataclass
class Header:
    phase: int
    acks: bool
    ack_now: bool
    section: bool
    connection: int
    number_low: int

    @staticmethod
    def parse(datagram):
        """The header, or None when this is no data packet."""
        if len(datagram) < HEADER_LEN:
            return None
        flags, connection, number = struct.unpack_from("<BIH", datagram)
        if not flags & 0x80 or flags & 0x07:
            return None
        return Header(flags >> 6 & 1, bool(flags & 0x20), bool(flags & 0x10), bool(flags & 0x08), connection, number)


@dataclass
class Acks:
    newest: int
    delay: int = None
    marks: int = None
    arrived: set = field(default_factory=set)
    rebuilt: set = field(default_factory=set)

    @staticmethod
    def parse(reader, highest_sent):
        acks = Acks(expand(reader.integer(2), highest_sent))
        if acks.newest > highest_sent:
            raise Malformed(f"acknowledges {acks.newest}, but only {highest_sent} was sent")
        counts = reader.integer(1)
        acks.delay = reader.integer(1) if counts & 0x40 else None
        acks.marks = reader.integer(1) if counts & 0x80 else None
        count = counts & 0x3F
        if count == 63:
            bits = reader.integer(4) << 1 | 1
            acks.arrived = {acks.newest - i for i in range(33) if bits >> i & 1}
            return acks
        if count > 32:
            raise Malformed("too many runs")
        number = acks.newest
        number = acks._run(acks.arrived, number, reader.varint() + 1)
        for _ in range(count):
            gap = reader.varint()
            number = acks._run(acks.rebuilt if gap & 1 else set(), number, (gap >> 1) + 1)
            number = acks._run(acks.arrived, number, reader.varint())
        return acks

    @staticmethod
    def _run(into, number, count):
        if count > number + 1:
            raise Malformed("a run below zero")
        into.update(range(number - count + 1, number + 1))
        return number - count


@dataclass
class Message:
    channel: int
    priority: int
    number_low: int
    index: int
    total: int
    payload: bytes


@dataclass
class Parity:
    """A parity frame: what it covers and the symbol."""
    carrier: int
    covered: list
    symbol: bytes

    @staticmethod
    def parse(carrier, body):
        reader = Reader(body)
        distance, mask = reader.integer(1), reader.varint()
        if not 1 <= distance <= 63:
            raise Malformed("distance of a parity")
        newest = carrier - distance
        covered = [newest] + [newest - 1 - i for i in range(62) if mask >> i & 1]
        symbol = reader.rest()
        if len(covered) > 16 or min(covered) < 0 or not 3 <= len(symbol) <= 1_152:
            raise Malformed("shape of a parity")
        return Parity(carrier, covered, symbol)


@dataclass
class Packet:
    header: Header
    number: int
    acks: Acks = None
    # In the order of the packet: ("ping",), ("close", code, text), ..., ("message", Message), ("parity", Parity).
    frames: list = field(default_factory=list)
    section: bytes = None
    section_messages: list = field(default_factory=list)


def parse_content(header, number, content, highest_sent_by_receiver, unreliable):
    """Takes a packet's content apart. `unreliable` holds the channels whose whole messages have no number."""
    packet, reader = Packet(header, number), Reader(content)
    if header.acks:
        packet.acks = Acks.parse(reader, highest_sent_by_receiver)
    if header.section:
        packet.section = reader.rest()
    while packet.section is None and reader.left():
        kind = reader.integer(1)
        if kind & 0x80:
            packet.frames.append(("message", parse_message(kind, reader, unreliable)))
        elif kind == 0:
            break
        elif kind == 1:
            packet.frames.append(("ping",))
        elif kind == 2:
            code, length = reader.integer(2), reader.integer(1)
            packet.frames.append(("close", code, reader.take(length).decode()))
        elif kind in (3, 4):
            packet.frames.append(("path challenge" if kind == 3 else "path response", reader.take(8)))
        elif kind == 5:
            packet.frames.append(("parity", Parity.parse(number, reader.take(reader.varint()))))
        elif kind == 6:
            packet.section = reader.rest()
        elif kind == 7:
            packet.frames.append(("skip", reader.integer(1), reader.integer(2)))
        elif kind == 8:
            packet.frames.append(("progress", reader.integer(1), reader.integer(2), reader.integer(2)))
        else:
            raise Malformed(f"frame of kind {kind}")
    if packet.section is not None:
        packet.section_messages = parse_section(packet.section, unreliable)
    return packet


def parse_section(section, unreliable):
    """The messages of a protected section."""
    reader, messages = Reader(section), []
    while reader.left():
        kind = reader.integer(1)
        if not kind & 0x80:
            raise Malformed("a section holds messages only")
        messages.append(parse_message(kind, reader, unreliable))
    return messages


def parse_message(kind, reader, unreliable):
    channel = kind & 7
    if channel == 7:
        channel = reader.integer(1)
    fragment = bool(kind & 0x40)
    number = reader.integer(2) if fragment or channel not in unreliable else None
    index, total = (reader.varint(), reader.varint()) if fragment else (None, None)
    payload = reader.take(reader.left() if kind & 0x20 else reader.varint())
    if fragment:
        expected = min(FRAGMENT_LEN, total - index * FRAGMENT_LEN)
        if total <= FRAGMENT_LEN or len(payload) != expected:
            raise Malformed("length of a fragment")
    elif len(payload) > FRAGMENT_LEN:
        raise Malformed("a long message in one piece")
    return Message(channel, kind >> 3 & 3, number, index, total, payload)


# GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1.
POWER, LOG = [0] * 512, [0] * 256
_x = 1
for _i in range(255):
    POWER[_i] = POWER[_i + 255] = _x
    LOG[_x] = _i
    _x = _x << 1 ^ (0x11D if _x & 0x80 else 0)


def multiply(a, b):
    return POWER[LOG[a] + LOG[b]] if a and b else 0


def inverse(a):
    return POWER[255 - LOG[a]]


def coefficient(carrier, source):
    return inverse((128 + carrier % 128) ^ (source % 128))


def scale(factor, data):
    table = bytes(multiply(factor, value) for value in range(256))
    return data.translate(table)


def add(a, b):
    size = max(len(a), len(b))
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(size, "little")


def symbol_of(section):
    return len(section).to_bytes(2, "little") + section


class Rebuilder:
    """Rebuilds missing sections from parity by elimination."""

    def __init__(self):
        self.known = {}
        self.rows = []  # ({packet: coefficient}, symbol)

    def section(self, number, section):
        """A section arrived. Returns what it makes known besides, oldest first."""
        self.known.setdefault(number, section)
        return self._solve()

    def parity(self, parity):
        """A parity arrived. Returns what was rebuilt, oldest first."""
        row = {number: coefficient(parity.carrier, number) for number in parity.covered}
        self.rows.append((row, parity.symbol))
        return self._solve()

    def _solve(self):
        rebuilt = []
        while True:
            self.rows = self._reduce(self.rows)
            alone = [(row, symbol) for row, symbol in self.rows if len(row) == 1]
            if not alone:
                return sorted(rebuilt)
            for row, symbol in alone:
                ((number, factor),) = row.items()
                symbol = scale(inverse(factor), symbol)
                length = int.from_bytes(symbol[:2], "little")
                if not 0 < length <= len(symbol) - 2 or any(symbol[2 + length:]):
                    raise Malformed(f"parity gives nonsense for packet {number}")
                self.known[number] = symbol[2:2 + length]
                rebuilt.append((number, self.known[number]))

    def _reduce(self, rows):
        """Takes known sections out of the rows and brings them into reduced echelon form."""
        reduced = []
        for row, symbol in rows:
            row = dict(row)
            for number in [n for n in row if n in self.known]:
                symbol = add(symbol, scale(row.pop(number), symbol_of(self.known[number])))
            reduced.append([row, symbol])
        done = []
        while reduced:
            row, symbol = reduced.pop()
            if not row:
                if any(symbol):
                    raise Malformed("parity contradicts what arrived")
                continue
            pivot = min(row)
            factor = inverse(row[pivot])
            row, symbol = {n: multiply(factor, c) for n, c in row.items()}, scale(factor, symbol)
            for other in reduced + done:
                if pivot in other[0]:
                    by = other[0][pivot]
                    for number, value in row.items():
                        mixed = other[0].get(number, 0) ^ multiply(by, value)
                        if mixed:
                            other[0][number] = mixed
                        else:
                            other[0].pop(number, None)
                    other[1] = add(other[1], scale(by, symbol))
            done.append([row, symbol])
        oldest = max(self.known, default=0) - 128
        return [(row, symbol) for row, symbol in done if row and min(row) > oldest]
