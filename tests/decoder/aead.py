"""Packet protection in plain Python, from `docs/handshake.md`: HKDF, AES-128-GCM, ChaCha20-Poly1305 and the null suite.

Slow and not constant-time: it reads captures, it does not protect anything. No packages are needed.
"""

import hashlib
import hmac
import struct

MASK64 = (1 << 64) - 1
AES_128_GCM, CHACHA20_POLY1305, NULL = 1, 2, 4


def hkdf_expand(secret, info, length):
    """HKDF-Expand (RFC 5869) with SHA-256."""
    out, block, counter = b"", b"", 1
    while len(out) < length:
        block = hmac.new(secret, block + info + bytes([counter]), hashlib.sha256).digest()
        out += block
        counter += 1
    return out[:length]


class Epoch:
    """The keys of one direction between two renewals."""

    def __init__(self, suite, secret, protocol_id):
        length = 16 if suite == AES_128_GCM else 32
        self.key = hkdf_expand(secret, b"muse key" + bytes([suite]), length)
        self.iv = hkdf_expand(secret, b"muse iv" + bytes([suite]), 12)
        self.secret, self.suite, self.protocol_id = secret, suite, protocol_id
        if suite == AES_128_GCM:
            self.cipher = AesGcm(self.key)
        elif suite == CHACHA20_POLY1305:
            self.cipher = ChaCha20Poly1305(self.key)
        else:
            self.cipher = Null(protocol_id)

    def next(self):
        """The keys after a renewal."""
        return Epoch(self.suite, hkdf_expand(self.secret, b"muse rekey", 32), self.protocol_id)

    def open(self, number, header, sealed):
        """The content of a packet, or None when it is not authentic."""
        nonce = bytes(a ^ b for a, b in zip(self.iv, number.to_bytes(12, "big")))
        associated = self.protocol_id.to_bytes(8, "little") + header
        tag_len = 8 if self.suite == NULL else 16
        if len(sealed) < tag_len:
            return None
        text, tag = sealed[:-tag_len], sealed[-tag_len:]
        return self.cipher.open(nonce, associated, text, tag)


class Null:
    """No secrecy: a checksum with the protocol id."""

    def __init__(self, protocol_id):
        self.protocol_id = protocol_id

    def open(self, nonce, associated, text, tag):
        return text if checksum(self.protocol_id, nonce, associated, text) == tag else None


def checksum(protocol_id, *parts):
    """`sum` of docs/handshake.md."""

    def step(state, word):
        mixed = ((state ^ word) * 0x9E3779B97F4A7C15) & MASK64
        return mixed ^ (mixed >> 32)

    state = protocol_id ^ 0xCBF29CE484222325
    for part in parts:
        state = step(state, len(part))
        whole = len(part) // 8 * 8
        for (word,) in struct.iter_unpack("<Q", part[:whole]):
            state = step(state, word)
        state = step(state, int.from_bytes(part[whole:], "little"))
    return state.to_bytes(8, "little")


def _aes_tables():
    """The S-box and the table that joins SubBytes, ShiftRows and MixColumns."""
    power, log, x = [0] * 256, [0] * 256, 1
    for i in range(255):
        power[i], log[x] = x, i
        x ^= (x << 1) ^ (0x11B if x & 0x80 else 0)
    sbox = []
    for value in range(256):
        inverse = 0 if value == 0 else power[(255 - log[value]) % 255]
        out = 0x63
        for shift in range(5):
            out ^= ((inverse << shift) | (inverse >> (8 - shift))) & 0xFF
        sbox.append(out)
    table = []
    for value in sbox:
        double = ((value << 1) ^ (0x11B if value & 0x80 else 0)) & 0xFF
        table.append(double << 24 | value << 16 | value << 8 | (double ^ value))
    rotate = lambda word, bits: (word >> bits | word << (32 - bits)) & 0xFFFFFFFF
    return sbox, [[rotate(word, 8 * i) for word in table] for i in range(4)]


SBOX, (T0, T1, T2, T3) = _aes_tables()


class AesGcm:
    """AES-128-GCM with a 12-byte nonce."""

    def __init__(self, key):
        self.rounds = self._expand(key)
        self.products = self._products(int.from_bytes(self.block(bytes(16)), "big"))

    @staticmethod
    def _expand(key):
        words, constant = list(struct.unpack(">4I", key)), 1
        for i in range(4, 44):
            word = words[i - 1]
            if i % 4 == 0:
                word = (word << 8 | word >> 24) & 0xFFFFFFFF
                word = int.from_bytes(bytes(SBOX[b] for b in word.to_bytes(4, "big")), "big")
                word ^= constant << 24
                constant = (constant << 1) ^ (0x11B if constant & 0x80 else 0)
            words.append(words[i - 4] ^ word)
        return words

    @staticmethod
    def _products(h):
        """For each byte of a block and each value of it, its product with the hash key."""
        power, bits = h, []
        for _ in range(128):
            bits.append(power)
            power = (power >> 1) ^ (0xE1 << 120 if power & 1 else 0)
        tables = []
        for position in range(16):
            table = [0] * 256
            for value in range(1, 256):
                low = value & -value
                index = 8 * position + 7 - (low.bit_length() - 1)
                table[value] = table[value ^ low] ^ bits[index]
            tables.append(table)
        return tables

    def block(self, data):
        k = self.rounds
        a, b, c, d = struct.unpack(">4I", data)
        a, b, c, d = a ^ k[0], b ^ k[1], c ^ k[2], d ^ k[3]
        for r in range(4, 40, 4):
            a, b, c, d = (
                T0[a >> 24] ^ T1[b >> 16 & 255] ^ T2[c >> 8 & 255] ^ T3[d & 255] ^ k[r],
                T0[b >> 24] ^ T1[c >> 16 & 255] ^ T2[d >> 8 & 255] ^ T3[a & 255] ^ k[r + 1],
                T0[c >> 24] ^ T1[d >> 16 & 255] ^ T2[a >> 8 & 255] ^ T3[b & 255] ^ k[r + 2],
                T0[d >> 24] ^ T1[a >> 16 & 255] ^ T2[b >> 8 & 255] ^ T3[c & 255] ^ k[r + 3],
            )
        out = []
        for i, (w, x, y, z) in enumerate(((a, b, c, d), (b, c, d, a), (c, d, a, b), (d, a, b, c))):
            word = SBOX[w >> 24] << 24 | SBOX[x >> 16 & 255] << 16 | SBOX[y >> 8 & 255] << 8 | SBOX[z & 255]
            out.append(word ^ k[40 + i])
        return struct.pack(">4I", *out)

    def _hash(self, data, state):
        for at in range(0, len(data), 16):
            state ^= int.from_bytes(data[at:at + 16].ljust(16, b"\0"), "big")
            block, state = state.to_bytes(16, "big"), 0
            for table, byte in zip(self.products, block):
                state ^= table[byte]
        return state

    def open(self, nonce, associated, text, tag):
        state = self._hash(text, self._hash(associated, 0))
        state = self._hash(struct.pack(">QQ", 8 * len(associated), 8 * len(text)), state)
        mask = int.from_bytes(self.block(nonce + b"\0\0\0\1"), "big")
        if (state ^ mask).to_bytes(16, "big") != tag:
            return None
        count = (len(text) + 15) // 16
        stream = b"".join(self.block(nonce + struct.pack(">I", i + 2)) for i in range(count))
        return _xor(text, stream)


class ChaCha20Poly1305:
    """ChaCha20-Poly1305 (RFC 8439)."""

    def __init__(self, key):
        self.key = struct.unpack("<8I", key)

    def block(self, counter, nonce):
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *self.key, counter, *struct.unpack("<3I", nonce)]
        x = list(start)

        def quarter(a, b, c, d):
            for left, right, into, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[left] = (x[left] + x[right]) & 0xFFFFFFFF
                word = x[into] ^ x[left]
                x[into] = (word << bits | word >> (32 - bits)) & 0xFFFFFFFF

        for _ in range(10):
            for i in range(4):
                quarter(i, i + 4, i + 8, i + 12)
            for i in range(4):
                quarter(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
        return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start)))

    def open(self, nonce, associated, text, tag):
        one_time = self.block(0, nonce)
        r = int.from_bytes(one_time[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
        s = int.from_bytes(one_time[16:32], "little")
        pad = lambda data: data + bytes(-len(data) % 16)
        data = pad(associated) + pad(text) + struct.pack("<QQ", len(associated), len(text))
        state = 0
        for at in range(0, len(data), 16):
            state = (state + int.from_bytes(data[at:at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
        if ((state + s) & ((1 << 128) - 1)).to_bytes(16, "little") != tag:
            return None
        count = (len(text) + 63) // 64
        stream = b"".join(self.block(i + 1, nonce) for i in range(count))
        return _xor(text, stream)


def _xor(text, stream):
    size = len(text)
    mixed = int.from_bytes(text, "little") ^ int.from_bytes(stream[:size], "little")
    return mixed.to_bytes(size, "little")
