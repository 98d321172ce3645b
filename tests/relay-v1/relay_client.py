"""A client of relay protocol v1, from docs/relay-v1.md."""

import socket
import struct

GROUP, UNICAST, UNUSED, DISCARD = 1, 2, 4, 8
BROADCAST, LIST, TCP_UNICAST, STATE, RESET = 0, 1, 2, 3, 4
# Several ticks: whatever leaves at the next one has arrived.
PATIENCE = 3.0
# Three ticks: what has not arrived by then was not sent.
SILENCE = 0.16


def tcp_packet(control, data=b""):
    return struct.pack("<HBH", len(data), control, len(data)) + data


def udp_packet(kind, control, time, addr, data=b"", lengths=None):
    first, second = lengths or (len(data), len(data))
    return struct.pack("<HBBIHB", first, kind, control, time, second, addr) + data


def parse_udp(datagram):
    first, kind, control, time, second, addr = struct.unpack("<HBBIHB", datagram[:11])
    assert first == second == len(datagram) - 11, datagram
    return kind, control, time, addr, datagram[11:]


class Client:
    """One TCP connection and one UDP socket."""

    def __init__(self, port, source="127.0.0.1"):
        self.server = ("127.0.0.1", port)
        self.tcp = socket.create_connection(self.server, PATIENCE, (source, 0))
        self.tcp.settimeout(PATIENCE)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.udp.bind((source, 0))
        self.buffer = b""
        self.address = None

    def welcome(self):
        """Reads the address; None if the server refused."""
        packet = self.receive()
        if packet is None:
            return None
        control, data = packet
        assert control == 0 and len(data) == 1 and data[0] != 0, packet
        self.address = data[0]
        return self.address

    def send(self, control, data=b""):
        self.tcp.sendall(tcp_packet(control, data))

    def receive(self, patience=PATIENCE):
        """The next TCP packet as (control, data), None at the end of the stream, or TimeoutError."""
        self.tcp.settimeout(patience)
        while True:
            if len(self.buffer) >= 5:
                first, control, second = struct.unpack("<HBH", self.buffer[:5])
                assert first == second, self.buffer[:5]
                if len(self.buffer) >= 5 + first:
                    data = self.buffer[5 : 5 + first]
                    self.buffer = self.buffer[5 + first :]
                    return control, data
            try:
                more = self.tcp.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                assert not self.buffer, "the stream ended within a packet"
                return None
            self.buffer += more

    def is_silent(self):
        try:
            got = self.receive(SILENCE)
        except TimeoutError:
            return True
        raise AssertionError(f"unexpected {got}")

    def send_udp(self, datagram):
        self.udp.sendto(datagram, self.server)

    def announce(self):
        self.send_udp(udp_packet(0, DISCARD, 0, self.address))

    def receive_udp(self, patience=PATIENCE):
        self.udp.settimeout(patience)
        datagram, source = self.udp.recvfrom(65536)
        assert source == self.server, source
        return datagram

    def all_udp(self, patience=SILENCE):
        """Everything that arrives until nothing has for a while."""
        got = []
        while True:
            try:
                got.append(self.receive_udp(patience))
            except TimeoutError:
                return got

    def settle(self):
        """Waits until the server has handled everything sent by TCP before, and a tick has passed."""
        self.send(STATE, bytes([self.address]))
        assert self.receive() == (STATE, b"\x01")

    def close(self):
        self.tcp.close()
        self.udp.close()
