#!/usr/bin/env python3
"""HTTPS as operators have it: HAProxy and Caddy in front of the shipped program.

    python3 tests/https/test_https.py PROGRAM haproxy|caddy ...

Needs openssl, and what is named. Standard library only.
"""

import http.client
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 90
NAME = "game.example"


class Programs:
    """Programs that end with the test."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, words, **more):
        log = open(self.folder / f"{name}.log", "wb")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **more)
        self.running.append((name, process))
        return process

    def said(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self):
        for _, process in reversed(self.running):
            process.terminate()
        for _, process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def free_ports(count):
    """Ports that nobody has; each with the next one free as well."""
    found = []
    while len(found) < count:
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                next_one.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            if all(abs(port - other) > 1 for other in found):
                found.append(port)
    return found


def until(what, test):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        result = test()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def listens(port):
    def test():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False

    return test


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def self_signed(folder, name):
    """A certificate that is its own authority, and its key."""
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(chain))
    return chain, key


class Connection(http.client.HTTPConnection):
    """An HTTP connection from an address of this machine, with TLS or without. The server's certificate is looked at and not checked."""

    def __init__(self, port, secure=False, source="127.0.0.1"):
        super().__init__("127.0.0.1", port, timeout=20, source_address=(source, 0))
        self.secure = secure

    def connect(self):
        super().connect()
        if self.secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock, server_hostname=NAME)

    def status(self, path, headers={}):
        self.request("GET", path, headers={"Host": NAME, **headers})
        answer = self.getresponse()
        answer.read()
        return answer.status


def limited(port, source, secure, headers=lambda n: {}):
    """How many of 40 requests from an address are answered. Each has a connection of its own."""
    answered = 0
    for n in range(40):
        connection = Connection(port, secure, source)
        answered += connection.status("/v1/ranking", headers(n)) == 200
        connection.close()
    return answered


def clients_have_limits_of_their_own(port, secure):
    forged = lambda n: {"X-Forwarded-For": f"203.0.113.{n}"}
    for source in ["127.0.0.2", "127.0.0.3"]:
        # 20 at once, and one a second from then on.
        answered = limited(port, source, secure, forged)
        assert 20 <= answered < 36, f"{answered} of 40 from {source}"


def start_master(program, programs, folder, *more):
    (port,) = free_ports(1)
    programs.start("master", [program, "master", "--listen", f"127.0.0.1:{port}", "--database", str(folder / "muse.db"), "--warm", "0", "--requests-per-second", "1", "--trusted-proxy", "127.0.0.1", *more])
    until("the master", lambda: f"127.0.0.1:{port}" in programs.said("master"))
    return port


def haproxy(program, programs, folder):
    """HAProxy passes TLS through and names clients by PROXY protocol; its own checks find the master."""
    chain, key = self_signed(folder, NAME)
    master = start_master(program, programs, folder, "--proxy-protocol", "--tls-cert", str(chain), "--tls-key", str(key))
    (port,) = free_ports(1)
    file = folder / "haproxy.cfg"
    file.write_text(
        f"""defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend game
    bind 127.0.0.1:{port}
    default_backend master
backend master
    server one 127.0.0.1:{master} send-proxy-v2 check
"""
    )
    programs.start("haproxy", ["haproxy", "-db", "-f", str(file)])
    until("the proxy", listens(port))
    clients_have_limits_of_their_own(port, True)


def caddy(program, programs, folder):
    """Caddy ends TLS and names clients in a header of HTTP, whatever they said themselves."""
    chain, key = self_signed(folder, NAME)
    master = start_master(program, programs, folder)
    (port,) = free_ports(1)
    file = folder / "Caddyfile"
    file.write_text(
        f"""{{
    admin off
    auto_https disable_redirects
}}
https://{NAME}:{port} {{
    bind 127.0.0.1
    tls {chain} {key}
    reverse_proxy 127.0.0.1:{master} {{
        transport http {{
            keepalive 5s
        }}
    }}
}}
"""
    )
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    programs.start("caddy", ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"], env=environment)
    until("the proxy", listens(port))
    clients_have_limits_of_their_own(port, True)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    tests = {"haproxy": haproxy, "caddy": caddy}
    passed = failed = 0
    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            programs = Programs(folder)
            begun = time.monotonic()
            try:
                tests[name](program, programs, folder)
                passed += 1
                print(f"ok      {name} ({time.monotonic() - begun:.1f} s)")
            except Exception as error:
                failed += 1
                print(f"FAILED  {name}: {error!r}")
                for log in sorted(folder.glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
            finally:
                programs.end()
    print(f"https: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
