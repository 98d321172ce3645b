"""Checks a running relay against docs/relay-v1.md, byte by byte: test_relay.py PATH_TO_MUSE."""

import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
import urllib.request

from relay_client import (
    BROADCAST, DISCARD, GROUP, LIST, PATIENCE, RESET, SILENCE, STATE, TCP_UNICAST, UNICAST, UNUSED,
    Client, parse_udp, tcp_packet, udp_packet,
)

MUSE = sys.argv[1]
TESTS = []


def test(*flags):
    def register(function):
        TESTS.append((function, flags))
        return function

    return register


class Relay:
    def __init__(self, flags):
        words = [MUSE, "relay", "--v1", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *flags]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        assert words[0] == "ready" and words[2] == "metrics", words
        self.port = int(words[1].rsplit(":", 1)[1])
        self.metrics_url = words[3]
        self.clients = []

    def connect(self, source="127.0.0.1"):
        client = Client(self.port, source)
        self.clients.append(client)
        return client

    def join(self, count, udp=True):
        """Clients that have their address and, if wanted, their UDP endpoint known."""
        joined = []
        for _ in range(count):
            client = self.connect()
            assert client.welcome() is not None
            joined.append(client)
        if udp:
            for client in joined:
                client.announce()
            self.metric_reaches("muse_relay_v1_udp_endpoints", count)
        return joined

    def metric(self, name):
        page = urllib.request.urlopen(self.metrics_url, timeout=PATIENCE).read().decode()
        for line in page.splitlines():
            if line.startswith(name + " ") or line.startswith(name + "{") and line.split()[0] == name:
                return float(line.split()[1])
        raise AssertionError(f"no {name} in\n{page}")

    def metric_reaches(self, name, value):
        deadline = time.monotonic() + PATIENCE
        while (now := self.metric(name)) < value:
            assert time.monotonic() < deadline, f"{name} is {now}, not {value}"

    def stop(self):
        for client in self.clients:
            client.close()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE * 4) == 0


@test()
def the_address_is_told_at_once(relay):
    raw = socket.create_connection(("127.0.0.1", relay.port), PATIENCE)
    assert raw.recv(64) == bytes.fromhex("010000010001")
    again = socket.create_connection(("127.0.0.1", relay.port), PATIENCE)
    assert again.recv(64) == bytes.fromhex("010000010002")
    raw.close()
    again.close()


@test()
def a_broadcast_reaches_all_others_unchanged(relay):
    a, b, c = relay.join(3, udp=False)
    for through in range(16):
        a.send(through << 4 | BROADCAST, bytes([through]) * through)
        for other in (b, c):
            assert other.receive() == (through << 4, bytes([through]) * through)
    assert a.is_silent() and b.is_silent() and c.is_silent()


@test()
def a_packet_may_be_as_long_as_its_length_can_say(relay):
    a, b = relay.join(2, udp=False)
    data = bytes(range(256)) * 256
    a.send(0xF0, data[:65535])
    a.send(BROADCAST)
    assert b.receive() == (0xF0, data[:65535])
    assert b.receive() == (BROADCAST, b"")


@test()
def packets_arrive_in_order_however_the_stream_is_cut(relay):
    a, b = relay.join(2, udp=False)
    stream = b"".join(tcp_packet(BROADCAST, bytes([n]) * (n % 7)) for n in range(200))
    for at in range(0, len(stream), 3):
        a.tcp.sendall(stream[at : at + 3])
    for n in range(200):
        assert b.receive() == (BROADCAST, bytes([n]) * (n % 7))


@test()
def a_unicast_reaches_one_with_its_senders_address(relay):
    a, b, c = relay.join(3, udp=False)
    a.send(0x50 | TCP_UNICAST, bytes([c.address]) + b"psst")
    assert c.receive() == (0x50 | TCP_UNICAST, bytes([a.address]) + b"psst")
    a.send(TCP_UNICAST, bytes([c.address]))
    assert c.receive() == (TCP_UNICAST, bytes([a.address]))
    a.send(TCP_UNICAST, bytes([a.address]) + b"me")
    assert a.receive() == (TCP_UNICAST, bytes([a.address]) + b"me")
    assert a.is_silent() and b.is_silent() and c.is_silent()


@test()
def the_list_names_the_others(relay):
    (a,) = relay.join(1, udp=False)
    a.send(0xA0 | LIST)
    assert a.receive() == (0xA0 | LIST, b"")
    b, c = relay.join(2, udp=False)
    a.send(LIST, b"ignored")
    assert a.receive() == (LIST, bytes([b.address, c.address]))
    c.send(LIST)
    assert c.receive() == (LIST, bytes([a.address, b.address]))
    assert b.is_silent()


@test()
def the_state_of_a_client_is_told(relay):
    a, b = relay.join(2, udp=False)
    for address, active in ((a.address, 1), (b.address, 1), (0, 0), (9, 0), (255, 0)):
        a.send(0x30 | STATE, bytes([address]) + b"more is ignored")
        assert a.receive() == (0x30 | STATE, bytes([active]))
    assert b.is_silent()


@test()
def unused_controls_are_ignored(relay):
    a, b = relay.join(2, udp=False)
    for control in range(5, 16):
        a.send(control, b"x")
    a.send(TCP_UNICAST)
    a.send(STATE)
    a.settle()
    assert b.is_silent()
    assert relay.metric('muse_relay_v1_tcp_dropped_total{cause="ignored"}') == 13


@test()
def data_for_nobody_is_dropped_silently(relay):
    a, b = relay.join(2, udp=False)
    gone = b.address
    b.close()
    deadline = time.monotonic() + PATIENCE
    while True:
        a.send(STATE, bytes([gone]))
        if a.receive() == (STATE, b"\x00"):
            break
        assert time.monotonic() < deadline
    for address in (0, gone, 200):
        a.send(TCP_UNICAST, bytes([address]) + b"x")
        a.send_udp(udp_packet(1, UNICAST, 1, address, b"x"))
    a.settle()
    # Nobody was told that it went.
    assert a.is_silent()
    (c,) = relay.join(1, udp=False)
    assert c.address == gone
    assert c.is_silent()


@test()
def different_lengths_cost_the_connection_but_not_what_came_before(relay):
    a, b = relay.join(2, udp=False)
    a.tcp.sendall(tcp_packet(BROADCAST, b"good") + struct.pack("<HBH", 3, 0, 4) + b"evil, and much more" * 100)
    assert b.receive() == (BROADCAST, b"good")
    assert a.receive() is None
    b.settle()
    b.send(STATE, bytes([a.address]))
    assert b.receive() == (STATE, b"\x00")
    (c,) = relay.join(1, udp=False)
    assert c.address == a.address
    c.tcp.sendall(struct.pack("<HBH", 256, 0, 1))
    assert c.receive() is None


@test()
def everybody_past_the_last_address_is_refused(relay):
    clients = [relay.connect() for _ in range(255)]
    assert [client.welcome() for client in clients] == list(range(1, 256))
    for _ in range(3):
        assert relay.connect().welcome() is None
    clients[99].close()
    # The server hears of it soon; until then it refuses.
    deadline = time.monotonic() + PATIENCE
    while (address := relay.connect().welcome()) is None:
        assert time.monotonic() < deadline
    assert address == 100
    clients[0].send(BROADCAST, b"to 254")
    assert clients[254].receive() == (BROADCAST, b"to 254")


@test("--clients-max", "2")
def a_lower_limit_is_kept(relay):
    relay.join(2)
    assert relay.connect().welcome() is None


@test()
def udp_needs_an_announcement(relay):
    a, b = relay.join(2, udp=False)
    a.send_udp(udp_packet(5, 0, 1, a.address, b"one"))
    assert b.all_udp() == []
    # A unicast teaches nothing.
    b.send_udp(udp_packet(5, UNICAST, 1, a.address, b"no"))
    b.send_udp(udp_packet(5, UNICAST | DISCARD, 1, b.address, b"no"))
    a.send_udp(udp_packet(5, 0, 2, a.address, b"two"))
    assert b.all_udp() == [] and a.all_udp() == []
    # The example of the page, for address 2.
    b.send_udp(bytes.fromhex("0000000800000000000002"))
    a.send_udp(udp_packet(5, 0, 3, a.address, b"three"))
    assert b.receive_udp() == udp_packet(5, 0, 3, a.address, b"three")
    assert a.all_udp() == []


@test()
def packets_without_a_flag_pass_unchanged(relay):
    a, b, c = relay.join(3)
    sent = [udp_packet(n % 3, (n % 16) << 4 | (UNUSED if n % 2 else 0), 1000 - n, a.address, b"d" * n) for n in range(50)]
    for datagram in sent:
        a.send_udp(datagram)
    assert b.all_udp() == sent
    assert c.all_udp() == sent
    assert a.all_udp() == []


@test()
def a_unicast_over_udp_hides_its_sender(relay):
    a, b, c = relay.join(3)
    a.send_udp(udp_packet(7, 0x90 | UNICAST, 55, b.address, b"for b"))
    assert b.receive_udp() == udp_packet(7, 0x90 | UNICAST, 55, b.address, b"for b")
    a.send_udp(udp_packet(7, UNICAST, 56, a.address, b"for me"))
    assert a.receive_udp() == udp_packet(7, UNICAST, 56, a.address, b"for me")
    assert a.all_udp() == [] and b.all_udp() == [] and c.all_udp() == []


@test()
def malformed_datagrams_are_dropped(relay):
    a, b = relay.join(2)
    good = udp_packet(1, 0, 1, a.address, b"good")
    for bad in (
        b"", good[:5], good[:10], good[:-1], good + b"x",
        udp_packet(1, 0, 1, a.address, b"bad", lengths=(3, 4)),
        udp_packet(1, 0, 1, a.address, b"bad", lengths=(4, 3)),
        udp_packet(1, 0, 1, a.address, b"bad", lengths=(4, 4)),
        udp_packet(1, 0, 1, a.address, b"b" * 1422),
    ):
        a.send_udp(bad)
    longest = udp_packet(1, 0, 1, a.address, b"l" * 1421)
    assert len(longest) == 1432
    a.send_udp(longest)
    a.send_udp(good)
    assert b.all_udp() == [longest, good]


@test()
def grouped_packets_leave_once_a_tick_with_its_number(relay):
    a, b = relay.join(2)
    ticks = []
    for _ in range(8):
        # Right after a tick, so that all of it falls into the next one.
        a.settle()
        for counter in range(5):
            a.send_udp(udp_packet(32, 0xB0 | GROUP, 100 * len(ticks) + counter, a.address, bytes([counter])))
        a.send_udp(udp_packet(16, GROUP, 100 * len(ticks) + 50, a.address, b"other type"))
        got = [parse_udp(datagram) for datagram in (b.receive_udp(), b.receive_udp())]
        (kind, control, tick, addr, data), other = got
        assert (kind, control, addr, data) == (32, 0xB0 | GROUP, a.address, b"\x04"), got
        assert other == (16, GROUP, tick, a.address, b"other type"), got
        ticks.append(tick)
    assert b.all_udp() == []
    steps = [after - before for before, after in zip(ticks, ticks[1:])]
    assert all(1 <= step <= 20 for step in steps), ticks


@test()
def the_counter_is_one_for_all_types(relay):
    a, b = relay.join(2)
    a.settle()
    for kind, counter, data in ((32, 8, b"A"), (16, 10, b"C"), (32, 9, b"B"), (32, 10, b"D"), (16, 11, b"E")):
        a.send_udp(udp_packet(kind, GROUP, counter, a.address, data))
    got = [(kind, data) for kind, _, _, _, data in map(parse_udp, b.all_udp())]
    assert got == [(32, b"A"), (16, b"E")], got
    # When none is held, one is taken whatever its counter.
    a.send_udp(udp_packet(32, GROUP, 1, a.address, b"late"))
    assert parse_udp(b.receive_udp())[4] == b"late"


@test()
def grouped_unicasts_are_held_by_destination(relay):
    a, b, c = relay.join(3)
    a.settle()
    flags = GROUP | UNICAST
    for counter, to, data in ((1, b, b"b1"), (2, c, b"c2"), (3, b, b"b3 is longer"), (2, c, b"c-old")):
        a.send_udp(udp_packet(9, flags, counter, to.address, data))
    a.send_udp(udp_packet(9, GROUP, 4, a.address, b"all"))
    assert [packet[3:] for packet in map(parse_udp, b.all_udp())] == [(b.address, b"b3 is longer"), (a.address, b"all")]
    assert [packet[3:] for packet in map(parse_udp, c.all_udp())] == [(c.address, b"c2"), (a.address, b"all")]


@test()
def the_counter_starts_again(relay):
    a, b = relay.join(2)

    def sends(counter, arrives):
        a.send_udp(udp_packet(3, GROUP, counter, a.address, struct.pack("<I", counter)))
        got = [data for *_, data in map(parse_udp, b.all_udp())]
        assert got == ([struct.pack("<I", counter)] if arrives else []), (counter, got)

    # The very first is taken, huge or not.
    sends(0xFFFFFFFF, True)
    a.send(RESET, b"ignored")
    a.settle()
    sends(0xFFFFFFFE, False)
    sends(2147483647, False)
    sends(2147483646, True)
    sends(4294967292, True)
    sends(5, True)
    sends(5 + 2147483647, False)
    sends(5 + 2147483646, True)


@test()
def a_reset_before_the_first_packet_changes_nothing(relay):
    a, b = relay.join(2)
    a.send(RESET)
    a.settle()
    a.send_udp(udp_packet(3, GROUP, 4000000000, a.address, b"first"))
    assert parse_udp(b.receive_udp())[4] == b"first"


@test()
def the_newest_endpoint_counts(relay):
    a, b = relay.join(2)
    old = b.udp
    b.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    b.udp.bind(("127.0.0.1", 0))
    b.announce()
    a.settle()
    a.send_udp(udp_packet(1, 0, 1, a.address, b"moved"))
    assert b.receive_udp() == udp_packet(1, 0, 1, a.address, b"moved")
    old.settimeout(SILENCE)
    try:
        raise AssertionError(old.recv(2000))
    except TimeoutError:
        old.close()
    # The old endpoint is nobody's: its unicasts are dropped.
    assert relay.metric("muse_relay_v1_udp_endpoints") == 2


@test()
def nobody_speaks_in_anothers_name(relay):
    a, b = relay.join(2)
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("127.0.0.2", 0))
    for control in (0, DISCARD, GROUP):
        other.sendto(udp_packet(1, control, 1, a.address, b"lie"), a.server)
    other.sendto(udp_packet(1, UNICAST, 1, b.address, b"lie"), a.server)
    # Nor from an endpoint that is another's.
    b.send_udp(udp_packet(1, 0, 1, a.address, b"lie"))
    assert a.all_udp() == [] and b.all_udp() == []
    b.send_udp(udp_packet(1, 0, 1, b.address, b"truth"))
    assert a.receive_udp() == udp_packet(1, 0, 1, b.address, b"truth")
    assert relay.metric('muse_relay_v1_udp_dropped_total{cause="spoofed"}') == 4
    other.close()


@test("--danger-any-udp-source")
def the_check_of_the_ip_address_can_be_turned_off(relay):
    a, b = relay.join(2)
    a.udp.close()
    a.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    a.udp.bind(("127.0.0.2", 0))
    a.send_udp(udp_packet(1, 0, 1, a.address, b"from elsewhere"))
    assert b.receive_udp() == udp_packet(1, 0, 1, a.address, b"from elsewhere")


@test()
def without_tcp_there_is_no_udp(relay):
    a, b = relay.join(2)
    b.tcp.close()
    relay.metric_reaches('muse_relay_v1_ended_total{cause="left"}', 1)
    b.send_udp(udp_packet(1, 0, 1, b.address, b"ghost"))
    a.send_udp(udp_packet(1, 0, 1, a.address, b"to a ghost"))
    a.send_udp(udp_packet(1, UNICAST, 1, b.address, b"to a ghost"))
    assert a.all_udp() == [] and b.all_udp() == []


@test("--keep-alive-seconds", "1")
def endpoints_are_kept_alive(relay):
    a, b = relay.join(2)
    for client in (a, b):
        kind, control, tick, addr, data = parse_udp(client.receive_udp())
        assert (kind, control, addr, data) == (0, DISCARD, client.address, b"")
        again = parse_udp(client.receive_udp())
        # One is due every 20 ticks, and a busy machine may send it some ticks later.
        assert (again[2] // 20) - (tick // 20) == 1, (tick, again)


@test("--udp-packets-per-second", "10", "--udp-burst", "20")
def a_flood_over_udp_is_cut_to_its_rate(relay):
    a, b, c = relay.join(3)
    for n in range(200):
        a.send_udp(udp_packet(1, 0, n, a.address, b"flood"))
    b.send_udp(udp_packet(1, 0, 1, b.address, b"calm"))
    got = [parse_udp(datagram) for datagram in c.all_udp()]
    assert 20 <= sum(addr == a.address for *_, addr, _ in got) < 40
    assert (1, 0, 1, b.address, b"calm") in got


@test()
def the_server_drains(relay):
    a, b = relay.join(2)
    a.settle()
    a.send(BROADCAST, b"last words")
    a.send_udp(udp_packet(1, 0, 1, a.address, b"last words"))
    relay.process.send_signal(signal.SIGTERM)
    assert b.receive() == (BROADCAST, b"last words")
    assert b.receive_udp() == udp_packet(1, 0, 1, a.address, b"last words")
    # No new clients, but those that are there go on for a while.
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            refused = Client(relay.port).welcome() is None
        except (ConnectionRefusedError, ConnectionResetError):
            refused = True
        if refused:
            break
        assert time.monotonic() < deadline
    b.send(BROADCAST, b"still here")
    assert a.receive() == (BROADCAST, b"still here")
    a.close()
    b.close()
    assert relay.process.wait(PATIENCE * 4) == 0


def main():
    passed, failed = 0, 0
    for function, flags in TESTS:
        relay = Relay(flags)
        try:
            function(relay)
            relay.stop()
            passed += 1
        except Exception:
            failed += 1
            print(f"{function.__name__}:")
            traceback.print_exc(file=sys.stdout)
        finally:
            relay.process.kill()
            relay.process.wait()
    print(f"relay-v1: {passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
