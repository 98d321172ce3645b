"""MUSE-RP v1, written from docs/muse-rp.md alone: shares no code with the library.

One thread, two UDP sockets. `Client` and `Server` talk to one peer each; both lose a chosen share of what they send and receive.
"""

import random
import select
import socket
import struct
import time

ACK, INIT, END, PING = 1, 2, 4, 8
RELIABLE, PARTIAL = 0, 1
HEADER = struct.Struct("<IIBH")
INFO = struct.Struct("<7I")
MODULUS = 1 << 32


def distance(newer, older):
    """How far `newer` is ahead of `older`, modulo wrap-around; negative when it is behind."""
    ahead = (newer - older) % MODULUS
    return ahead - MODULUS if ahead >= MODULUS // 2 else ahead


def encode(seq, ack, flags, kind=0, payload=b""):
    return HEADER.pack(seq % MODULUS, ack % MODULUS, flags, kind) + payload


def decode(datagram):
    seq, ack, flags, kind = HEADER.unpack_from(datagram)
    return seq, ack, flags, kind, datagram[HEADER.size :]


class Reliable:
    """Next expected is delivered, within the window it is buffered once, anything else dropped."""

    def __init__(self, window, last):
        self.window, self.last, self.buffer = window, last, {}

    def receive(self, seq, item):
        ahead = distance(seq, self.last)
        if 1 <= ahead <= self.window:
            self.buffer.setdefault(seq, item)
        delivered = []
        while (following := (self.last + 1) % MODULUS) in self.buffer:
            self.last = following
            delivered.append((following, self.buffer.pop(following)))
        return delivered


class Partial:
    """Algorithm 4: at most `allowed` losses in each aligned window."""

    def __init__(self, window, percent, last):
        self.window, self.last, self.buffer = window, last, {}
        self.allowed = window * (100 - percent) // 100
        self.count = self.fails = 0

    def accept(self, gap):
        """Whether a message `gap` numbers behind the expected one may be delivered now."""
        if gap + self.count + 1 > self.window:
            here = self.window - self.count
            there = gap - here
            if self.fails + here > self.allowed or there > self.allowed:
                return False
            self.count, self.fails = there + 1, there
        elif self.fails + gap > self.allowed:
            return False
        else:
            self.count, self.fails = self.count + gap + 1, self.fails + gap
        if self.count == self.window:
            self.count = self.fails = 0
        return True

    def receive(self, seq, item):
        gap = distance(seq, self.last) - 1
        if gap < 0 or gap + 1 > self.window:
            return []
        self.buffer.setdefault(seq, item)
        delivered = []
        while self.buffer:
            lowest = min(self.buffer, key=lambda number: distance(number, self.last))
            if not self.accept(distance(lowest, self.last) - 1):
                break
            self.last = lowest
            delivered.append((lowest, self.buffer.pop(lowest)))
        return delivered


class Sender:
    def __init__(self, window, acked):
        self.window, self.acked, self.next = window, acked, (acked + 1) % MODULUS
        self.waiting, self.flight, self.duplicates, self.due = [], [], 0, None
        self.timer = 0.2

    def queue(self, flags, kind, payload):
        self.waiting.append((flags, kind, payload))

    def pump(self, now, ack, out):
        while self.waiting and distance(self.next, self.acked) <= self.window:
            flags, kind, payload = self.waiting.pop(0)
            self.flight.append(encode(self.next, ack, flags, kind, payload))
            self.next = (self.next + 1) % MODULUS
            out(self.flight[-1])
            self.due = self.due or now + self.timer
            if flags & INIT:
                break
        if self.due and now >= self.due:
            self.again(now, out)

    def again(self, now, out):
        if self.flight:
            out(self.flight[0])
            self.due = now + self.timer

    def acknowledge(self, now, ack, out):
        ahead = distance(ack, self.acked)
        if 0 < ahead <= self.window:
            del self.flight[:ahead]
            self.acked, self.duplicates = ack, 0
            self.due = now + self.timer if self.flight else None
        elif ahead == 0:
            self.duplicates += 1
            if self.duplicates % 3 == 0:
                self.again(now, out)


class Peer:
    def __init__(self, address, ports, loss, seed):
        self.random, self.loss = random.Random(seed), loss
        self.sockets = []
        for port in ports:
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.bind((address, port))
            self.sockets.append(opened)
        self.ports = [opened.getsockname()[1] for opened in self.sockets]
        self.remote = [None, None]
        self.senders, self.receivers = [None, None], [None, None]
        self.received = []
        self.connected = self.ended = False
        self.pings_answered = self.pongs = self.ping_id = 0
        self.next_ping = None
        self.acks_owed = self.acks_sent = 0
        self.pong_delays = []

    def close(self):
        for opened in self.sockets:
            opened.close()

    def transmit(self, channel, datagram):
        if self.random.random() >= self.loss:
            self.sockets[channel].sendto(datagram, self.remote[channel])

    def ack(self, channel):
        last = (self.senders[channel].next - 1) % MODULUS
        self.transmit(channel, encode(last, self.receivers[channel].last, ACK))

    def send(self, channel, kind, payload):
        self.senders[channel].queue(0, kind, payload)

    def idle(self):
        return all(not sender.waiting and not sender.flight for sender in self.senders)

    def end(self):
        self.sockets[RELIABLE].sendto(encode(0, 0, END), self.remote[RELIABLE])

    def run(self, until, limit):
        """Runs until `until()` holds; false after `limit` seconds."""
        deadline = time.monotonic() + limit
        while not until():
            now = time.monotonic()
            if now > deadline:
                return False
            ready, _, _ = select.select(self.sockets, [], [], 0.005)
            for opened in ready:
                try:
                    datagram, source = opened.recvfrom(2048)
                except ConnectionError:
                    continue
                if self.random.random() >= self.loss:
                    self.handle(self.sockets.index(opened), datagram, source)
            self.tick(time.monotonic())
        return True

    def tick(self, now):
        for channel, sender in enumerate(self.senders):
            if sender:
                last = self.receivers[channel].last
                sender.pump(now, last, lambda datagram: self.transmit(channel, datagram))
        if self.connected and (self.next_ping is None or now >= self.next_ping):
            self.next_ping = now + 0.3
            self.ping_id += 1
            self.ping_at = now
            self.transmit(RELIABLE, encode(self.ping_id, 0, PING, 0, b"\0"))

    def handle(self, channel, datagram, source):
        seq, ack, flags, kind, payload = decode(datagram)
        now = time.monotonic()
        if flags & INIT:
            return self.handle_init(channel, seq, ack, payload, source)
        if source != self.remote[channel] or not self.senders[channel]:
            return None
        if flags & END:
            self.ended = True
        elif flags & PING:
            self.handle_ping(now, seq, payload)
        elif flags & ACK:
            self.senders[channel].acknowledge(now, ack, lambda out: self.transmit(channel, out))
        else:
            for number, (kind, payload) in self.receivers[channel].receive(seq, (kind, payload)):
                self.received.append((channel, number, kind, payload))
            self.ack(channel)

    def handle_ping(self, now, seq, payload):
        if payload[0] == 0:
            self.pings_answered += 1
            self.transmit(RELIABLE, encode(seq, 0, PING, 0, b"\1"))
        elif seq == self.ping_id:
            self.pongs += 1
            self.pong_delays.append(now - self.ping_at)
            for sender in self.senders:
                sender.timer = max(2 * (now - self.ping_at), 0.02)


class Client(Peer):
    # Joins with other numbers first, as the original does when the offer reaches it twice.
    joins_twice = False

    def connect(self, server):
        self.s, self.a, self.s2, self.a2 = (self.random.randrange(MODULUS) for _ in range(4))
        self.remote[RELIABLE] = server
        for _ in range(10):
            info = INFO.pack(*self.ports, 0, 0, 0, 0, 0)
            self.transmit(RELIABLE, encode(self.s, self.a, INIT, 0, info))
            if self.run(lambda: self.connected, 1.5):
                return True
        return False

    def handle_init(self, channel, seq, ack, payload, source):
        if channel == RELIABLE and seq == (self.a + 1) % MODULUS and ack == self.s:
            if not self.senders[RELIABLE]:
                self.offer = INFO.unpack(payload)
                window, percent = self.offer[2:4]
                self.remote[PARTIAL] = (source[0], self.offer[1])
                if self.joins_twice:
                    self.transmit(PARTIAL, encode(self.s2 + 1, self.a2, INIT, 0, payload))
                    self.s2, self.a2 = (self.random.randrange(MODULUS) for _ in range(2))
                self.senders = [Sender(window, self.s), Sender(window, self.s2)]
                self.receivers = [Reliable(window, seq), Partial(window, percent, self.a2)]
                self.senders[PARTIAL].queue(INIT, 0, payload)
            self.ack(RELIABLE)
        if channel == PARTIAL and seq == (self.a2 + 1) % MODULUS and self.senders[PARTIAL]:
            if not self.connected:
                now = time.monotonic()
                self.senders[PARTIAL].acknowledge(now, ack, lambda out: None)
                self.receivers[PARTIAL].receive(seq, None)
                self.connected = True
            self.ack(PARTIAL)


class Server(Peer):
    def __init__(self, address, window, percent, loss, seed):
        super().__init__(address, [0, 0], loss, seed)
        self.window, self.percent = window, percent
        self.info = None

    def handle_init(self, channel, seq, ack, payload, source):
        if channel == RELIABLE and self.info is None:
            theirs = INFO.unpack(payload)
            self.remote[RELIABLE] = source
            self.info = INFO.pack(*self.ports, self.window, self.percent, theirs[0], theirs[1], 0)
            self.senders[RELIABLE] = Sender(self.window, ack)
            self.receivers[RELIABLE] = Reliable(self.window, seq)
            self.senders[RELIABLE].queue(INIT, 0, self.info)
        if channel == PARTIAL and self.info is not None:
            if not self.connected:
                assert payload == self.info, "step 3 echoes step 2"
                self.remote[PARTIAL] = source
                self.senders[PARTIAL] = Sender(self.window, ack)
                self.receivers[PARTIAL] = Partial(self.window, self.percent, seq)
                self.senders[PARTIAL].queue(INIT, 0, b"")
                self.connected = True
            else:
                self.ack(PARTIAL)
