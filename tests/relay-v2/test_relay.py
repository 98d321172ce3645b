"""Checks a running relay against docs/relay-v2.md, byte by byte: test_relay.py PATH_TO_MUSE."""

import hashlib
import hmac
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
import urllib.request

MUSE = sys.argv[1]
PATIENCE = 3.0
SILENCE = 0.3
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Relay:
    """A relay of its own for each test."""

    def __init__(self, *flags):
        words = [MUSE, "relay", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain-seconds", "1", *flags]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        assert words[0] == "ready", words
        self.address = ("127.0.0.1", int(words[1].rsplit(":", 1)[1]))
        self.metrics_page = words[3]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(10) == 0

    def metric(self, name):
        page = urllib.request.urlopen(self.metrics_page).read().decode()
        return next(float(line.split()[-1]) for line in page.splitlines() if line.startswith(name + " "))


class Party:
    """One socket that speaks with a relay."""

    def __init__(self, relay):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.relay = relay.address

    def say(self, packet):
        self.socket.sendto(packet, self.relay)

    def hear(self, kind):
        """The body of the next packet, which must be of this kind."""
        self.socket.settimeout(PATIENCE)
        packet, sender = self.socket.recvfrom(2048)
        assert sender == self.relay, sender
        assert packet[0] == kind, (hex(kind), packet.hex())
        return packet[1:]

    def silent(self):
        self.socket.settimeout(SILENCE)
        try:
            packet = self.socket.recv(2048)
        except TimeoutError:
            return True
        raise AssertionError(packet.hex())

    def here(self):
        ip, port = self.socket.getsockname()
        return b"\x04" + socket.inet_aton(ip) + bytes(12) + struct.pack("<H", port)

    def cookie(self, random):
        self.say((b"\x41\x02MUSE" + random).ljust(64, b"\0"))
        body = self.hear(0x42)
        assert len(body) == 47 and body[:8] == random and body[28:] == self.here(), body.hex()
        return body[8:28]

    def open(self, key, direct=0):
        random = os.urandom(8)
        cookie = self.cookie(random)
        self.say((b"\x43" + bytes([direct]) + random + cookie + key + b"\0").ljust(192, b"\0"))
        body = self.hear(0x44)
        assert len(body) == 34 and body[:8] == random and body[15:] == self.here(), body.hex()
        return body[8:15]

    def ask_to_join(self, code, direct=0):
        random = os.urandom(8)
        cookie = self.cookie(random)
        self.say((b"\x45" + bytes([direct]) + random + cookie + struct.pack("<Q", code) + b"\0").ljust(192, b"\0"))
        return random

    def join(self, code, direct=0):
        random = self.ask_to_join(code, direct)
        body = self.hear(0x46)
        assert len(body) == 34 and body[:8] == random and body[15:] == self.here(), body.hex()
        return body[8:15]


def code_of(key):
    return int.from_bytes(hashlib.sha256(b"muse room" + key).digest()[:8], "little") & (1 << 30) - 1


KEY = bytes(range(16))


def room(relay, direct=0):
    """A host, a guest, and their ids."""
    host, guest = Party(relay), Party(relay)
    room_id = host.open(KEY, direct)
    return host, guest, room_id, guest.join(code_of(KEY), direct)


def test_data_goes_both_ways_with_the_other_ends_id():
    with Relay() as relay:
        host, guest, _, guest_id = room(relay)
        guest.say(b"\x40" + guest_id + b"to the host")
        body = host.hear(0x40)
        host_id = body[:7]
        assert body[7:] == b"to the host" and host_id != guest_id
        host.say(b"\x40" + host_id + b"to the guest")
        assert guest.hear(0x40) == guest_id + b"to the guest"
        assert relay.metric("muse_relay_rooms") == 1 and relay.metric("muse_relay_guests") == 1


def test_nothing_without_a_cookie():
    with Relay() as relay:
        party, random = Party(relay), os.urandom(8)
        party.say((b"\x43\0" + random + bytes(20) + KEY + b"\0").ljust(192, b"\0"))
        assert party.hear(0x42)[:8] == random
        assert relay.metric("muse_relay_rooms") == 0
        cookie = party.cookie(random)
        other = Party(relay)
        other.say((b"\x43\0" + random + cookie + KEY + b"\0").ljust(192, b"\0"))
        other.hear(0x42)
        assert relay.metric("muse_relay_rooms") == 0, "a cookie of another address"


def test_short_questions_have_no_answer():
    with Relay() as relay:
        party = Party(relay)
        party.say((b"\x41\x02MUSE" + os.urandom(8)).ljust(63, b"\0"))
        party.say(b"\x48" + bytes(7))
        party.say(b"")
        party.say(b"\xff" + os.urandom(99))  # of no kind that the relay knows
        assert party.silent()


def test_refusals():
    with Relay("--guests-per-room", "1") as relay:
        party = Party(relay)
        random = party.ask_to_join(12345)
        assert party.hear(0x47) == random + b"\x01"
        room(relay)
        random = party.ask_to_join(code_of(KEY))
        assert party.hear(0x47) == random + b"\x03"
        party.say((b"\x41\x09MUSE" + random).ljust(64, b"\0"))
        assert party.hear(0x47) == random + b"\x05"


def test_signs_of_life_and_moves():
    with Relay() as relay:
        host, guest, room_id, guest_id = room(relay)
        for party, number in ((host, room_id), (guest, guest_id)):
            party.say((b"\x48" + number).ljust(32, b"\0"))
            assert party.hear(0x49) == number + party.here()
        moved = Party(relay)
        moved.say(b"\x40" + guest_id + b"from a new address, but the right one")
        host_id = host.hear(0x40)[:7]
        proof = moved.hear(0x4B)
        assert proof[:7] == guest_id and len(proof) == 27
        host.say(b"\x40" + host_id + b"before the proof")
        assert guest.hear(0x40) == guest_id + b"before the proof"
        moved.say((b"\x4c" + proof).ljust(32, b"\0"))
        assert moved.hear(0x49) == guest_id + moved.here()
        host.say(b"\x40" + host_id + b"after the proof")
        assert moved.hear(0x40) == guest_id + b"after the proof"
        assert relay.metric("muse_relay_moves_total") == 1


def test_unknown_ids_are_gone_and_leaving_ends_the_way():
    with Relay() as relay:
        host, guest, room_id, guest_id = room(relay)
        stranger = Party(relay)
        stranger.say(b"\x40" + bytes(7) + b"?")
        assert stranger.hear(0x4A) == bytes(7)
        stranger.say(b"\x4d" + room_id)
        assert stranger.silent() and relay.metric("muse_relay_rooms") == 1, "not from there"
        host.say(b"\x4d" + room_id)
        assert guest.hear(0x4A) == guest_id
        assert relay.metric("muse_relay_rooms") == 0


def test_introductions_and_the_direct_way():
    with Relay() as relay:
        host, guest, _, guest_id = room(relay, direct=1)
        to_guest, to_host = guest.hear(0x4E), host.hear(0x4E)
        host_id, token = to_host[:7], to_host[7:15]
        assert to_guest == guest_id + token + b"\x01" + host.here()
        assert to_host == host_id + token + b"\x01" + guest.here()
        guest.say(b"\x50" + guest_id + bytes(8))
        assert host.silent(), "another token"
        guest.say(b"\x50" + guest_id + token)
        assert guest.hear(0x51) == guest_id + token
        assert host.hear(0x51) == host_id + token
        assert relay.metric("muse_relay_directs_total") == 1


def test_a_banned_guest_does_not_come_back():
    with Relay() as relay:
        host, guest, room_id, guest_id = room(relay)
        guest.say(b"\x40" + guest_id + b"hello")
        host_id, random = host.hear(0x40)[:7], os.urandom(8)
        stranger = Party(relay)
        ban = (b"\x55" + room_id + random + host_id + b"\0").ljust(32, b"\0")
        stranger.say(ban)
        stranger.hear(0x4B)
        assert relay.metric("muse_relay_guests") == 1, "from another address"
        host.say(ban)
        assert guest.hear(0x4A) == guest_id
        assert host.hear(0x4A) == host_id
        assert host.hear(0x56) == room_id + random
        for party in (guest, Party(relay)):
            random = party.ask_to_join(code_of(KEY))
            assert party.hear(0x47) == random + b"\x06"
        host.say(ban)
        assert len(host.hear(0x56)) == 15, "repeated, with the guest gone"


def test_an_address_is_banned_by_name():
    with Relay() as relay:
        host, random = Party(relay), os.urandom(8)
        room_id = host.open(KEY)
        here = b"\x04\x7f\0\0\x01" + bytes(12) + b"\x09\0"
        host.say(b"\x55" + room_id + random + bytes(7) + b"\x01" + here)
        assert host.hear(0x56) == room_id + random
        party = Party(relay)
        random = party.ask_to_join(code_of(KEY))
        assert party.hear(0x47) == random + b"\x06"


def test_a_relay_of_a_master_opens_no_room_without_a_token():
    with tempfile.TemporaryDirectory() as folder:
        key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # of RFC 8032
        with Relay("--master-key", key, "--key-file", folder + "/relay.key") as relay:
            for token in (b"", os.urandom(255)):
                party, random = Party(relay), os.urandom(8)
                cookie = party.cookie(random)
                shown = struct.pack("<H", len(token)) + token
                party.say((b"\x43\0" + random + cookie + KEY + b"\0" + shown + bytes(4)).ljust(192, b"\0"))
                assert party.hear(0x47) == random + b"\x07"
            assert relay.metric("muse_relay_rooms") == 0


def test_the_same_key_opens_the_room_again_elsewhere():
    with Relay() as relay:
        host, guest, room_id, guest_id = room(relay)
        again = Party(relay)
        assert again.open(KEY) == room_id
        guest.say(b"\x40" + guest_id + b"hello")
        assert again.hear(0x40)[7:] == b"hello"


def test_the_hosts_invitation_is_read_as_the_page_says():
    with Relay() as relay:
        words = [MUSE, "echo", "--listen", "127.0.0.1:0", "--relay", "127.0.0.1:%d" % relay.address[1]]
        host = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            key = host.stdout.readline().split()[-1]
            invitation = host.stdout.readline().split()[-1]
        finally:
            host.kill()
            host.wait()
        assert invitation.startswith("muse2:") and len(invitation) == 102, invitation
        number = 0
        for letter in invitation[6:]:
            number = number << 5 | ALPHABET.index(letter)
        content = number.to_bytes(60, "big")
        assert content[:19] == b"\x04\x7f\0\0\x01" + bytes(12) + struct.pack("<H", relay.address[1])
        assert content[27:59].hex() == key
        assert content[59] == hashlib.sha256(content[:59]).digest()[0]
        Party(relay).join(int.from_bytes(content[19:27], "little"))


# Edwards25519 and SPAKE2 by their definitions, slowly.
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, PRIME) % PRIME


def add(one, other):
    """The sum of two points."""
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2 % PRIME
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, PRIME)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, PRIME)
    return x % PRIME, y % PRIME


def times(scalar, point):
    """A point so many times."""
    result = (0, 1)
    for bit in bin(scalar)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def pack(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def unpack(data):
    number = int.from_bytes(data, "little")
    y = number & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    assert (x * x - square) % PRIME == 0
    return (x if x & 1 == number >> 255 else PRIME - x), y


BASE = unpack((4 * pow(5, -1, PRIME) % PRIME).to_bytes(32, "little"))
SIDE_A = unpack(bytes.fromhex("15cfd18e385952982b6a8f8c7854963b58e34388c8e6dae891db756481a02312"))
SIDE_B = unpack(bytes.fromhex("f04f2e7eb734b2a8f8b472eaf9c3c632576ac64aea650b496a8a20ff00e583c3"))


def mac(key, *parts):
    return hmac.digest(key, b"".join(parts), "sha256")


def scalar_of(password):
    """HKDF with SHA-256 of the password, as a number."""
    key = mac(bytes(32), password)
    first = mac(key, b"SPAKE2 pw\x01")
    second = mac(key, first, b"SPAKE2 pw\x02")
    return int.from_bytes((first + second)[:48], "big") % ORDER


def learn_key(relay, room, secret):
    """What a guest with a short code does; returns the host's key, or the reason for which it is denied."""
    guest = Party(relay)
    way = guest.join(room)
    random, password = os.urandom(8), struct.pack("<I", secret)
    ours, scalar = int.from_bytes(os.urandom(32), "little") % ORDER, scalar_of(password)
    point = pack(add(times(ours, BASE), times(scalar, SIDE_A)))
    guest.say(b"\x40" + way + b"\x57" + random + point)
    body = guest.hear(0x40)
    assert len(body) == 7 + 41 and body[:7] == way and body[7:16] == b"\x58" + random, body.hex()
    theirs = body[16:]
    unmasked = add(unpack(theirs), times(ORDER - scalar, SIDE_B))
    names = [b"muse code guest", b"muse code host" + struct.pack("<Q", room)]
    parts = [hashlib.sha256(part).digest() for part in [password, *names]]
    key = hashlib.sha256(b"".join(parts) + point + theirs + pack(times(ours, unmasked))).digest()
    guest.say((b"\x40" + way + b"\x59" + random + mac(key, b"muse code guest", random)).ljust(81, b"\0"))
    body = guest.hear(0x40)[7:]
    if body[0] == 0x5B:
        assert len(body) == 10 and body[1:9] == random, body.hex()
        return body[9]
    assert len(body) == 73 and body[:9] == b"\x5a" + random, body.hex()
    sealed, proof = body[9:41], body[41:]
    assert proof == mac(key, b"muse code host", random, sealed)
    return bytes(one ^ other for one, other in zip(sealed, mac(key, b"muse code pad", random)))


def test_a_short_code_leads_to_the_hosts_key_as_the_page_says():
    with Relay() as relay:
        words = [MUSE, "echo", "--listen", "127.0.0.1:0", "--relay", "127.0.0.1:%d" % relay.address[1]]
        host = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            key, _, typed = (host.stdout.readline().split() for _ in range(3))
            number = 0
            for letter in typed[2].replace("-", ""):
                number = number << 5 | ALPHABET.index(letter)
            room, secret = number >> 20, number & (1 << 20) - 1
            assert learn_key(relay, room, secret).hex() == key[-1]
            for wrong in range(1, 9):
                assert learn_key(relay, room, secret ^ wrong) == 1
            assert learn_key(relay, room, secret) == 2
        finally:
            host.kill()
            host.wait()


def test_another_key_with_the_same_code_is_refused():
    known = {}
    for number in range(1_000_000):
        key = struct.pack("<QQ", number, 7)
        other = known.setdefault(code_of(key), key)
        if other != key:
            break
    with Relay() as relay:
        Party(relay).open(key)
        party, random = Party(relay), os.urandom(8)
        cookie = party.cookie(random)
        party.say((b"\x43\0" + random + cookie + other + b"\0").ljust(192, b"\0"))
        assert party.hear(0x47) == random + b"\x08"


def main():
    passed = failed = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                passed += 1
            except Exception:
                failed += 1
                print(f"{name}:")
                traceback.print_exc()
    print(f"relay-v2: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
