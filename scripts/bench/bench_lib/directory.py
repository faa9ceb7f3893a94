# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A directory of very many hosts, in a real etcd: what it costs one of them. And a daemon with very many peers."""

import json
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "daemon"))

import pipe_peer as p  # noqa: E402
from etcd import Etcd, Host, encode  # noqa: E402

GIDS, HOSTS = 1_000_000, 10_000
BATCH = 1000  # keys in a transaction
MANY, ONE_BY_ONE = 10_000, 1_000
IDLE = 20  # seconds
PEERS = 200


def row(name, values, unit):
    values = values if isinstance(values, list) else [values]
    return {"name": name, "value": statistics.median(values), "unit": unit, "peer": None, "peer_value": None,
            "ratio": None, "min": min(values), "max": max(values), "runs": len(values)}


# ------------------------------------------------------------------------------ etcd

def put(key, value):
    return {"request_put": {"key": encode(key), "value": encode(value)}}


def fill(etcd, gids):
    """GID number N, as directory_host counts them, is host N mod HOSTS's."""
    def send(first):
        requests = [put(key.format(gid=f"scale/fd{'0' * 22}{number:08x}", host=f"h{number % HOSTS}"), '{"type":"v2"}')
                    for number in range(first, min(first + BATCH // 2, gids))
                    for key in ("pvrdma/gids/{gid}/{host}", "pvrdma/hosts/{host}/gids/{gid}")]
        body = json.dumps({"success": requests}).encode()
        with urllib.request.urlopen(urllib.request.Request(etcd.url + "/v3/kv/txn", body), timeout=120) as answer:
            answer.read()

    for first in range(0, HOSTS, BATCH):
        etcd.call("/v3/kv/txn", {"success": [put(f"pvrdma/hosts/h{number}/address", '{"address":"192.0.2.1:7471"}')
                                             for number in range(first, first + BATCH)]})
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(send, range(0, gids, BATCH // 2)):
            pass


def memory_of(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def many(host, command, first, count):
    since = host.mark()
    host.tell(command, "scale", first, count)
    result = json.loads(host.wait("many ", since, patience=120)[5:])
    assert not result["missing"], result
    return result


def etcd_rows(etcd, gids):
    """The times of a host that looks up MANY of them and then watches those."""
    host = Host("self", f"etcd={etcd.url}", "address=192.0.2.1:7471")
    host.wait("log 2 directory: announced")
    begin = host.stats()
    rate = many(host, "many", 0, MANY)
    after = host.stats()
    single = many(host, "spread", gids // 2, ONE_BY_ONE)
    host.watch(3)  # for watches to be made
    idle_begin = host.stats()
    host.watch(IDLE)
    idle_end = host.stats()
    assert idle_end["entries"] == MANY + ONE_BY_ONE and idle_end["watches"] >= MANY
    yield row("directory.gids", gids, "")
    yield row("directory.etcd_memory", memory_of(etcd.child.pid), "B")
    yield row("directory.lookups", rate["count"] / rate["seconds"], "1/s")
    yield {**row("directory.lookup_time", single["median"], "s"), "min": single["min"], "max": single["max"],
           "runs": single["count"]}
    yield row("directory.lookup_time_p99", single["p99"], "s")
    yield row("directory.memory_per_gid", (after["rss"] - begin["rss"]) / MANY, "B")
    yield row("directory.traffic_per_gid", (after["tx_bytes"] + after["rx_bytes"] - begin["tx_bytes"]
                                            - begin["rx_bytes"]) / MANY, "B")
    yield row("directory.requests_per_gid", (after["requests"] - begin["requests"]) / MANY, "")
    traffic = sum(idle_end[key] - idle_begin[key] for key in ("tx_bytes", "rx_bytes"))
    yield row("directory.idle_traffic", traffic / IDLE, "B/s")
    yield row("directory.idle_cpu", (idle_end["cpu"] - idle_begin["cpu"]) / IDLE * 100, "%")
    host.end()


# ------------------------------------------------------------------------------ peers

class Peers:
    """Many peers in one thread: each greets, and answers PING."""

    def __init__(self, network, daemon_address):
        self.network, self.daemon_address = network, daemon_address
        self.selector, self.pending, self.ending = selectors.DefaultSelector(), {}, False
        self.greeted = 0
        for number in range(PEERS):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self.address(number), 7471))
            sock.listen(64)
            self.selector.register(sock, selectors.EVENT_READ, ("listener", number))
        threading.Thread(target=self.run, daemon=True).start()

    def address(self, number):
        return f"{self.network}.{number + 10}"

    def dial(self):
        """As those that want something of the daemon do."""
        for number in range(PEERS):
            sock = socket.create_connection((self.daemon_address, 7471), 20, (self.address(number), 0))
            sock.sendall(p.hello(f"p{number}", instance=number + 1))
            self.selector.register(sock, selectors.EVENT_READ, ("dialled", number))

    def run(self):
        while not self.ending:
            for key, _ in self.selector.select(0.2):
                kind, number = key.data
                if kind == "listener":
                    sock = key.fileobj.accept()[0]
                    self.selector.register(sock, selectors.EVENT_READ, ("accepted", number))
                else:
                    self.read(key.fileobj, kind, number)

    def read(self, sock, kind, number):
        data = self.pending.pop(sock, b"") + (sock.recv(65536) or b"")
        while len(data) >= 8:
            size, frame, _, _ = struct.unpack_from("<IBBH", data)
            if len(data) < size:
                break
            self.handle(sock, kind, number, frame, data[8:size])
            data = data[size:]
        self.pending[sock] = data

    def handle(self, sock, kind, number, frame, body):
        if frame == p.PING:
            sock.sendall(p.frame(p.PONG, body))
        elif frame == p.HELLO:
            self.greeted += 1
            if kind == "accepted":
                index, dscp, count = struct.unpack_from("<BBB", body, 24)
                sock.sendall(p.hello(f"p{number}", instance=number + 1, index=index, dscp=dscp, count=count))


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def peer_rows(program):
    """A daemon that has dialled PEERS hosts, each of which has dialled it."""
    network, own = "127.201.7", "127.201.8.1"
    with tempfile.TemporaryDirectory() as folder:
        control = f"{folder}/control"
        peers = Peers(network, own)
        for count in (0, PEERS):
            argv = [program, "--control", control, "--name", "self", "--listen", own, "--connections", "2",
                    *(word for number in range(count) for word in ("--peer", f"p{number}={peers.address(number)}"))]
            with open(f"{folder}/log", "w+") as log, subprocess.Popen(argv, stderr=log, stdin=subprocess.DEVNULL) as child:
                try:
                    begin = time.monotonic()
                    while "ready, " not in Path(log.name).read_text() and time.monotonic() < begin + 20:
                        time.sleep(0.02)
                    if count:
                        peers.dial()
                        while peers.greeted < 3 * PEERS:
                            assert time.monotonic() < begin + 60, f"{peers.greeted} connections: {Path(log.name).read_text()[-500:]}"
                            time.sleep(0.02)
                        yield row("peers.connections", peers.greeted, "")
                        yield row("peers.until_connected", time.monotonic() - begin, "s")
                    time.sleep(2)
                    cpu, memory = cpu_of(child.pid), memory_of(child.pid)
                    if not count:
                        before = memory
                        continue
                    time.sleep(IDLE)
                    yield row("peers.idle_cpu", (cpu_of(child.pid) - cpu) / IDLE * 100, "%")
                    yield row("peers.memory_per_peer", (memory - before) / PEERS, "B")
                finally:
                    child.terminate()
        peers.ending = True


def rows(build, gids=GIDS):
    with tempfile.TemporaryDirectory() as folder:
        etcd = Etcd(Path(folder), ["--max-txn-ops", BATCH, "--max-request-bytes", 16 << 20,
                                   "--quota-backend-bytes", 8 << 30, "--snapshot-count", 1000000])
        try:
            begin = time.monotonic()
            fill(etcd, gids)
            print(f"directory: {gids} GIDs written in {time.monotonic() - begin:.0f} s", file=sys.stderr)
            yield from etcd_rows(etcd, gids)
        finally:
            etcd.stop()
    yield from peer_rows(build / "pvrdmad")
