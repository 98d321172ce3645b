"""Measures `muse proxy` from outside: see proxy-check.sh. Exits with 1 if a bar is missed."""

import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

MUSE = sys.argv[1]
FAILED = []
# What is measured is the proxy, not how busy the machine is with other things: real-time priority where it may be had, for the probers too.
URGENT = ["chrt", "-f", "10"] if shutil.which("chrt") and subprocess.run(["chrt", "-f", "10", "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
if URGENT:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))


def check(name, ok, figures):
    print(f"{'ok  ' if ok else 'MISS'} {name}: {figures}", flush=True)
    if not ok:
        FAILED.append(name)


class Proxy:
    def __init__(self, to, *flags):
        command = [*URGENT, MUSE, "proxy", "--listen", "127.0.0.1:0", "--to", to, *flags]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        host, port = self.child.stdout.readline().split()[1].rsplit(":", 1)
        self.address = (host, int(port))

    def cpu(self):
        with open(f"/proc/{self.child.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        summary, _ = self.child.communicate("quit\n", timeout=10)
        return summary


def udp():
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    it.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    it.bind(("127.0.0.1", 0))
    return it


def name(address):
    return f"{address[0]}:{address[1]}"


def receive_all(server, into, stamp=35):
    """Collects (number, when sent, when the kernel had it), by kernel time stamps, so that this program's own delays do not count."""
    server.setsockopt(socket.SOL_SOCKET, stamp, 1)  # SO_TIMESTAMPNS
    server.settimeout(2)
    try:
        while True:
            data, ancillary, _, _ = server.recvmsg(2048, 64)
            seconds, nanos = struct.unpack("qq", ancillary[0][2][:16])
            number, sent = struct.unpack("!Qd", data[:16])
            into.append((number, sent, seconds + nanos * 1e-9))
    except TimeoutError:
        pass


def delays(flags, count, pause):
    server, client, got = udp(), udp(), []
    proxy = Proxy(name(server.getsockname()), *flags)
    thread = threading.Thread(target=receive_all, args=(server, got))
    thread.start()
    for number in range(count):
        client.sendto(struct.pack("!Qd", number, time.time()), proxy.address)
        time.sleep(pause)
    thread.join()
    return sorted(1e3 * (arrived - sent) for _, sent, arrived in got), got, proxy.end()


def check_delay():
    for delay in (0, 20, 40, 150):
        found, _, _ = delays(["--delay", str(delay)], 1000, 0.002)
        p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
        check(f"delay of {delay} ms within 1 ms at p50", abs(p50 - delay) < 1, f"p50 {p50:.3f} ms, p99 {p99:.3f} ms, least {found[0]:.3f} ms, {len(found)} packets")
    found, _, _ = delays(["--delay", "40", "--jitter", "10"], 2000, 0.001)
    p50 = found[len(found) // 2]
    check("40 ms with jitter of 10 ms within 1 ms at p50", abs(p50 - 40) < 1, f"p50 {p50:.2f} ms, {found[20]:.1f} to {found[-20]:.1f} ms")


def check_loss():
    for flags, wanted in ((["--loss", "2"], 2.0), (["--loss", "5", "--burst", "4"], 5.0)):
        server, client, got = udp(), udp(), []
        proxy = Proxy(name(server.getsockname()), *flags)
        thread = threading.Thread(target=receive_all, args=(server, got))
        thread.start()
        payload = bytes(64)
        for number in range(100_000):
            client.sendto(struct.pack("!Qd", number, 0.0) + payload, proxy.address)
            if number % 20 == 19:
                time.sleep(0.001)
        thread.join()
        lost = 100 - len({number for number, _, _ in got}) / 1000
        # What the system dropped in the sockets of this program is not the proxy's.
        summary = proxy.end()
        drops = [line for line in summary.splitlines() if "not by request" in line]
        check(f"loss of {wanted} % ({' '.join(flags)}) within 0.2 points over 100,000 packets", abs(lost - wanted) < 0.2, f"{lost:.3f} % {drops or ''}")


def check_speed():
    """50,000 packets a second up through the proxy, paced by iperf3 where there is one."""
    port = free_port()
    proxy = Proxy(f"127.0.0.1:{port}", "--tcp", "--delay", "20")
    server = subprocess.Popen(["iperf3", "-s", "-1", "-p", str(port)], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    before, began = proxy.cpu(), time.time()
    # 50,000 packets a second of 100 bytes.
    result = iperf(proxy, "-u", "-b", "40M", "-l", "100", "-t", "8")
    cpu = proxy.cpu() - before
    server.wait(timeout=20)
    packets = result["end"]["sum"]["packets"]
    lost = result["end"]["sum"]["lost_percent"]
    rate = packets / result["end"]["sum"]["seconds"]
    summary = proxy.end()
    possible = packets / cpu if cpu else float("inf")
    check("50,000 packets a second on one core", possible >= 50_000, f"{rate:,.0f}/s offered by iperf3, {lost:.2f} % lost anywhere, {cpu:.2f} s of CPU for {packets:,} packets = {possible:,.0f} packets per CPU second")
    del summary, began


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def iperf(proxy, *flags):
    command = ["iperf3", "-c", proxy.address[0], "-p", str(proxy.address[1]), "-J", *flags]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    result = json.loads(answer.stdout)
    if "error" in result:
        raise SystemExit(f"iperf3: {result['error']}")
    return result


def check_iperf(directory):
    """iperf3 through the proxy: its own TCP control connection is forwarded too."""
    for flags, wanted in ((["--loss", "2"], 2.0), (["--up", "loss=5,burst=4"], 5.0)):
        port = free_port()
        server = subprocess.Popen(["iperf3", "-s", "-1", "-p", str(port)], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        capture = os.path.join(directory, "iperf.pcapng")
        proxy = Proxy(f"127.0.0.1:{port}", "--tcp", "--rtt", "40", *flags, *(["--capture", capture] if wanted == 2.0 else []))
        # 100,000 packets of 200 bytes at 10,000 a second.
        result = iperf(proxy, "-u", "-b", "16M", "-l", "200", "-t", "10")
        server.wait(timeout=20)
        lost, packets = result["end"]["sum"]["lost_percent"], result["end"]["sum"]["packets"]
        check(f"iperf3 -u sees {wanted} % lost ({' '.join(flags)}) within 0.2 points", abs(lost - wanted) < 0.2 and packets >= 95_000, f"{lost:.3f} % of {packets:,} packets")
        proxy.end()
        if wanted == 2.0:
            check_tshark(capture, packets)


def check_tshark(capture, packets):
    if not shutil.which("tshark"):
        print("left out: no tshark")
        return
    fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.comment", "frame.time_epoch", "udp.payload", "ip.checksum.status", "udp.checksum.status"]
    command = ["tshark", "-r", capture, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", "-d", "udp.port==1-65535,data"]
    for field in fields:
        command += ["-e", field if field != "udp.payload" else "data.data"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if answer.returncode:
        check("tshark reads the capture", False, answer.stderr.strip().splitlines()[-1:])
        return
    arrived, took, counts, bad = {}, [], {}, 0
    for line in answer.stdout.splitlines():
        side, direction, comment, at, payload, ip_ok, udp_ok = line.split("|")
        key = (side, "in" if direction.endswith("1") else "out", "lost" if comment else "")
        counts[key] = counts.get(key, 0) + 1
        bad += (ip_ok, udp_ok) != ("1", "1")
        if key == ("clients", "in", ""):
            arrived[payload] = float(at)
        elif key[:2] == ("server", "out") and payload in arrived:
            took.append(1e3 * (float(at) - arrived[payload]))
    p50 = statistics.median(took)
    text = ", ".join(f"{side} {way}{' ' + lost if lost else ''} {count:,}" for (side, way, lost), count in sorted(counts.items()))
    lost = counts.get(("clients", "in", "lost"), 0)
    whole = counts.get(("clients", "in", ""), 0) + lost >= packets and bad == 0
    check("tshark reads the capture, checksums right, sides apart", whole, text)
    check("delay of 20 ms between the two sides of the capture within 1 ms at p50", abs(p50 - 20) < 1, f"p50 {p50:.3f} ms over {len(took):,} packets")


def main():
    check_delay()
    check_loss()
    if shutil.which("iperf3"):
        with tempfile.TemporaryDirectory() as directory:
            check_iperf(directory)
        check_speed()
    else:
        print("left out: no iperf3")
    if FAILED:
        raise SystemExit(f"{len(FAILED)} missed")


main()
