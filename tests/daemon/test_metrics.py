# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The metrics for Prometheus: values, format, invalid settings, hostile clients, cost."""

import contextlib
import os
import re
import resource
import socket
import subprocess
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon_net import address
from daemon_process import PATIENCE, ROOT, wait_until
from delay import MACHINE_FACTOR, SANITIZER_FACTOR, is_sanitized
from scrape import Scrape, connect, get, http, program, promtool, read_all
from vfio_user import attach

PORT = 9471
CLIENTS = int(re.search(r"PVR_METRICS_CLIENTS (\d+)", (ROOT / "qemu-device/metrics/server.h").read_text())[1])


def place():
    return address(1), PORT


def options():
    return "--metrics", f"{address(1)}:{PORT}"


@pytest.fixture
def metered(start_daemon):
    """A daemon with metrics at place()."""
    return start_daemon(args=options())


def listens(daemon):
    return subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.count(f"pid={daemon.child.pid},")


# --------------------------------------------------------------------- format and values

def test_metrics_are_off_by_default(daemon):
    assert listens(daemon) == 0
    assert "pvrdmad/metrics" not in [path.read_text().strip() for path in Path(f"/proc/{daemon.child.pid}/task").glob("*/comm")]


def test_promtool_accepts_the_text(metered):
    done = promtool("check", "metrics", text=Scrape(place()).text)
    assert done.returncode == 0 and done.stdout + done.stderr == ""


def test_headers_of_the_reply(metered):
    status, headers, body = get(place())
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(headers["Content-Length"]) == len(body)
    status, headers, body = get(place(), method="HEAD")
    assert status == 200 and body == ""


def test_values_are_those_of_pvrdmactl(metered):
    """Each counter of pvrdmactl stats has a sample of this value."""
    with attach(metered.socket(1)) as client:
        ram = os.memfd_create("ram")
        os.ftruncate(ram, 1 << 20)
        client.map(0, 1 << 20, [ram])
        os.close(ram)
        client.read_reg(0)
        counters = metered.counters("node1")
        scrape = Scrape(place())
    source = (ROOT / "qemu-device/metrics/adapters.c").read_text()
    fields = {"qemu_clients": "clients", "qemu_messages": "messages", "qemu_refused": "refused"}
    not_numbers = {"name", "state", "driver_version", "features"}
    for counter in set(counters) - not_numbers:
        field = fields.get(counter, f"stats.{counter}")
        name, label = re.search(rf'{{ "(\w+)",\s(?:"\w+=\\"(\w+)\\""|NULL),[^}}]*FIELD\({re.escape(field)}\)', source).groups()
        found = [value for (family, pairs), value in scrape.samples.items() if family == f"pvrdma_adapter_{name}"
                 and ("adapter", "node1") in pairs and (not label or label in dict(pairs).values())]
        assert found == [counters[counter]], counter
    assert counters["qemu_messages"] > 0
    assert scrape.value("pvrdma_adapter_vm_connected", adapter="node1") == 1
    assert scrape.value("pvrdma_adapter_vm_connected", adapter="node2") == 0
    assert scrape.value("pvrdma_adapter_guest_memory_bytes", adapter="node1", fabric="default") == 1 << 20


def test_state_of_an_adapter(metered):
    metered.must("link", "node2", "down")
    scrape = Scrape(place())
    assert scrape.value("pvrdma_adapter_state", adapter="node1", state="idle") == 1
    assert scrape.all("pvrdma_adapter_state", adapter="node1", state="active") == [0]
    assert [scrape.value("pvrdma_adapter_link_up", adapter=name) for name in ("node1", "node2")] == [1, 0]


def test_adapter_that_is_added_or_removed(metered):
    metered.add_adapter("late", 9, fabric="red")
    assert Scrape(place()).value("pvrdma_adapter_link_up", adapter="late", fabric="red") == 1
    metered.must("remove-adapter", "late")
    assert Scrape(place()).all("pvrdma_adapter_link_up", adapter="late") == []


def test_each_adapter_is_there_once(start_daemon):
    """Many adapters are collected in several pages. Scrape refuses a sample that is there twice."""
    start_daemon(adapters=150, args=options())
    for _ in range(3):
        scrape = Scrape(place())
        assert len(scrape.all("pvrdma_adapter_link_up")) == 150


def test_unix_socket(start_daemon, tmp_path):
    path = str(tmp_path / "metrics")
    daemon = start_daemon(args=("--metrics", f"unix:{path}"))
    assert Scrape(path).value("pvrdma_adapter_link_up", adapter="node1") == 1
    assert daemon.stop() == 0
    assert not os.path.exists(path)


def test_setting_of_the_configuration_file(start_daemon, write_config):
    start_daemon(args=[write_config(f"metrics = {address(1)}:{PORT}\n")])
    assert Scrape(place()).all("pvrdma_adapter_link_up") == [1, 1]


def test_prometheus_scrapes(metered, tmp_path):
    """A real Prometheus with this target."""
    config = tmp_path / "prometheus.yml"
    config.write_text("scrape_configs:\n- job_name: pvrdma\n  scrape_interval: 1s\n  static_configs:\n"
                      f"  - targets: ['{address(1)}:{PORT}']\n")
    web = address(2), 9090
    with open(tmp_path / "prometheus.log", "wb") as log:
        child = subprocess.Popen([program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data",
                                  f"--web.listen-address={web[0]}:{web[1]}"], stdout=log, stderr=log)

    def query(text):
        with contextlib.suppress(OSError):
            return get(web, f"/api/v1/query?query={urllib.parse.quote(text)}")[2]
        return ""

    try:
        wait_until(lambda: '"1"]' in query('up{job="pvrdma"}'), "Prometheus has scraped")
        assert '"adapter":"node2"' in query("pvrdma_adapter_link_up")
    finally:
        child.terminate()
        child.wait(PATIENCE)


# -------------------------------------------------------------------------- bad settings

@pytest.mark.parametrize("value, complaint", [
    ("", "neither ADDRESS:PORT"),
    ("127.0.0.1", "neither ADDRESS:PORT"),
    ("::1", "neither ADDRESS:PORT"),
    ("localhost:9471", "is not an IP address"),
    ("127.0.0.1:0", "port '0' is not a number from 1 to 65535"),
    ("127.0.0.1:x", "port 'x' is not a number from 1 to 65535"),
    ("unix:metrics", "the path 'metrics' is not absolute"),
    (f"unix:{'/x' * 60}", "has 120 characters, the limit is 107"),
])
def test_bad_setting_is_refused(refuse, value, complaint):
    refuse(2, complaint, "--metrics", value)


def test_port_in_use_is_refused(metered, refuse):
    refuse(1, f"metrics: .*{address(1)}:{PORT}.*in use", *options())


def test_path_in_use_is_refused(start_daemon, refuse, tmp_path):
    path = f"unix:{tmp_path}/metrics"
    daemon = start_daemon(args=("--metrics", path))
    refuse(1, f"metrics: socket .* is in use by process {daemon.child.pid}", "--metrics", path)
    assert Scrape(path.removeprefix("unix:")).all("pvrdma_adapter_link_up") == [1, 1]


# ------------------------------------------------------------------------ hostile clients

@pytest.mark.parametrize("request_bytes, status", [
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"GET /metrics/../metrics HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405),
    (b"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400),
])
def test_bad_request_gets_a_status(metered, request_bytes, status):
    assert http(place(), request_bytes)[0] == status
    assert get(place())[0] == 200


@pytest.mark.parametrize("request_bytes", [
    b"\0" * 100 + b"\r\n\r\n", b"\r\n" * 50000, b"GET", b"\xff" * 100000,
    b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: " + b"x" * 100000 + b"\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"".join(b"h%d: x\r\n" % i for i in range(20000)) + b"\r\n",
], ids=["zeros", "newlines", "part", "garbage", "path", "header", "headers"])
def test_request_that_is_none_or_too_large_ends(metered, request_bytes):
    """Its connection ends without the metrics, or with an error."""
    before = metered.descriptors()
    reply = b""
    with connect(place()) as sock, contextlib.suppress(OSError):
        sock.settimeout(0.5)
        sock.sendall(request_bytes)
        reply = read_all(sock)
    assert not reply or reply.split()[1] in (b"400", b"413", b"414", b"431"), reply
    wait_until(lambda: metered.descriptors() == before, "the connection is closed")
    assert get(place())[0] == 200


def test_clients_that_send_nothing_do_not_stop_others(metered):
    with contextlib.ExitStack() as stack:
        for _ in range(CLIENTS - 1):
            stack.enter_context(connect(place()))
        assert get(place())[0] == 200


def test_client_that_does_not_read_does_not_stop_others(start_daemon):
    start_daemon(adapters=60, args=options())
    with connect(place()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert get(place())[0] == 200


def test_ten_thousand_connections_are_bounded(metered):
    """The daemon has CLIENTS of them; the others wait in the kernel. Afterwards it serves again."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    before, memory = metered.descriptors(), metered.resident()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    socks = []
    try:
        for _ in range(min(10000, limit[1] - 100)):
            sock = socket.socket()
            socks.append(sock)
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.connect(place())
        wait_until(lambda: metered.descriptors() >= before + CLIENTS, "connections are accepted")
        assert metered.descriptors() <= before + CLIENTS
        assert metered.resident() < memory + 4096
        metered.must("adapters")
    finally:
        for sock in socks:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert get(place())[0] == 200


@pytest.mark.long
def test_client_that_sends_without_end_is_cut_off(metered):
    """A byte per second, which MHD's own limit would accept for ever."""
    begin = time.monotonic()
    with connect(place()) as sock, contextlib.suppress(ConnectionError):
        sock.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        sock.settimeout(1)
        while time.monotonic() < begin + PATIENCE:
            sock.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                if not sock.recv(100):
                    break
    assert 19 < time.monotonic() - begin < 40


def test_many_scrapes_at_once_get_the_same(start_daemon):
    start_daemon(adapters=60, args=options())
    socks = [connect(place()) for _ in range(CLIENTS)]
    for sock in socks:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    for sock in socks:
        assert read_all(sock).count(b"\npvrdma_adapter_link_up{") == 60
        sock.close()


def test_rate_of_collections_is_limited(metered):
    """Ten per second, however many clients ask."""
    def ask(_):
        begin = time.monotonic()
        while time.monotonic() < begin + 1:
            assert get(place())[0] == 200

    begin, first = time.monotonic(), Scrape(place()).value("pvrdma_scrape_collections_total")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    num = Scrape(place()).value("pvrdma_scrape_collections_total") - first
    assert 0 < num <= 10 * (time.monotonic() - begin) + 1


def test_end_of_the_daemon_during_scrapes(start_daemon):
    daemon = start_daemon(adapters=60, args=options())
    socks = [connect(place()) for _ in range(CLIENTS)]
    for sock in socks:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert daemon.stop() == 0
    for sock in socks:
        sock.close()


def test_reset_connections(metered):
    """Connections that end with RST while their scrape waits."""
    before = metered.descriptors()
    for _ in range(200):
        sock = connect(place())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.close()
    assert get(place())[0] == 200
    wait_until(lambda: metered.descriptors() == before, "the connections are closed")


# ----------------------------------------------------------------------------------- cost

ADAPTERS = 250  # almost as many as a daemon can have
SCRAPES = 20


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_scrape_of_a_thousand_adapters_costs_less_than_a_percent(start_daemon):
    """In proportion to ADAPTERS; every 15 s. 16 ms of CPU time on a slow machine, 170 with sanitizers and other load."""
    daemon = start_daemon(adapters=ADAPTERS, args=options())
    before = cpu_seconds(daemon.child.pid)
    for _ in range(SCRAPES):
        assert get(place())[0] == 200
    each = (cpu_seconds(daemon.child.pid) - before) / SCRAPES * 1000 / ADAPTERS
    print(f"a scrape of 1,000 adapters: {1000 * each:.1f} ms")
    assert each < 0.002 * 15 * MACHINE_FACTOR * (SANITIZER_FACTOR if is_sanitized(daemon) else 1)
