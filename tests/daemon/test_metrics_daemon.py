# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The metrics of workers, log, faults, peers, certificate and directory, and the document that lists all metrics."""

import re
import subprocess
import time
from pathlib import Path

from daemon_net import address, peer_of, wait_pair
from daemon_process import PATIENCE, PVRDMAD, ROOT, wait_until
from scrape import Scrape, promtool

PORT = 9471
VERIFY = Path(PVRDMAD).parent / "tests/hosts/hosts_verify"
DOC = (ROOT / "docs/metrics.md").read_text()


def place(number=1):
    return address(number), PORT


def metrics(number=1):
    return "--metrics", f"{address(number)}:{PORT}"


def scrape(number=1):
    return Scrape(place(number))


# -------------------------------------------------------------------------------- workers

def test_each_worker_is_there(start_daemon):
    daemon = start_daemon(adapters=3, args=(*metrics(), "--workers", "2"))
    seen = scrape()
    assert [seen.value("pvrdma_worker_adapters", worker=str(i)) for i in (0, 1)] == [2, 1]
    assert all(value > 0 for value in seen.all("pvrdma_worker_rounds_total"))
    rows = daemon.query("workers")["workers"]
    assert [seen.value("pvrdma_worker_messages_total", worker=str(row["worker"])) for row in rows] == [0, 0]


def test_traffic_makes_the_worker_busy(start_daemon):
    """It is busy for no longer than the time that has passed. An idle worker is not busy."""
    daemon = start_daemon(args=metrics())
    idle = scrape()
    time.sleep(0.5)
    assert scrape().value("pvrdma_worker_busy_seconds_total") < idle.value("pvrdma_worker_busy_seconds_total") + 0.25
    begin = time.monotonic()
    before = scrape()
    subprocess.run([VERIFY, "--seconds", "0.5", f"1={daemon.socket(1)}", f"2={daemon.socket(2)}"], timeout=2 * PATIENCE,
                   stdout=subprocess.DEVNULL, check=True)
    after = scrape()
    passed = time.monotonic() - begin
    busy = after.value("pvrdma_worker_busy_seconds_total") - before.value("pvrdma_worker_busy_seconds_total")
    assert 0 < busy < passed
    assert 0 < after.value("pvrdma_worker_longest_turn_seconds") < passed
    assert after.value("pvrdma_worker_messages_total") > before.value("pvrdma_worker_messages_total")
    assert after.value("pvrdma_adapter_path_transmit_bytes_total", adapter="node1", path="local") > 0


# ------------------------------------------------------------------------------------- log

def test_lines_of_the_log_are_counted(start_daemon):
    daemon = start_daemon(args=metrics())
    before = scrape()
    daemon.must("link", "node1", "down")
    after = scrape()
    assert after.value("pvrdma_log_lines_total", level="info") > before.value("pvrdma_log_lines_total", level="info")
    assert after.value("pvrdma_log_lines_total", level="error") == 0
    assert after.value("pvrdma_log_lines_dropped_total") == 0


# ---------------------------------------------------------------------------------- faults

def test_fault_has_its_rule_as_a_label(start_daemon):
    daemon = start_daemon(args=(*metrics(), "--faults", "allowed"))
    assert scrape().value("pvrdma_fault_rules") == 0
    daemon.must("fault", "add", "--from", "node1", "drop=1%")
    row, = daemon.query("fault", "list")["faults"]
    seen = scrape()
    assert seen.value("pvrdma_fault_rules") == 1
    assert seen.value("pvrdma_fault_messages_total", fault=str(row["id"]), rule=row["fault"]) == 0


# ----------------------------------------------------------------------------------- hosts

def test_daemon_without_network_has_no_peers(start_daemon):
    start_daemon(args=metrics())
    seen = scrape()
    assert seen.all("pvrdma_peers") == [] and seen.all("pvrdma_peer_state") == []
    assert "pvrdma_directory_gids" not in seen.families


def test_peer_that_is_up(start):
    one, two = start(1, 2, args=metrics()), start(2, 1)
    wait_pair(one, two)
    wait_until(lambda: scrape().all("pvrdma_peer_rtt_seconds", peer="h2"), "a keep-alive was answered")
    seen = scrape()
    assert seen.value("pvrdma_peer_state", peer="h2", state="up") == 1
    assert sum(seen.all("pvrdma_peer_state", peer="h2")) == 1
    assert seen.value("pvrdma_peers", state="up") == 1 and sum(seen.all("pvrdma_peers")) == 1
    assert seen.value("pvrdma_peers_left_out") == 0
    row = peer_of(one, "h2")
    assert seen.value("pvrdma_peer_connections", peer="h2", direction="out", kind="stream") == row["conns_out"] > 0
    assert 0 < seen.value("pvrdma_peer_transmit_frames_total", peer="h2") <= peer_of(one, "h2")["tx_frames"]
    assert seen.value("pvrdma_network_accepted_total") > 0


def test_peer_that_is_unreachable(start):
    start(1, 9, args=metrics())
    wait_until(lambda: scrape().value("pvrdma_peer_state", peer="h9", state="unreachable") == 1, "h9 is unreachable")
    assert scrape().value("pvrdma_peer_connect_failures_total", peer="h9") > 0


def test_idle_hosts_of_a_directory_are_counted_only(start, tmp_path):
    """A directory can have thousands."""
    hosts = 250
    peers = tmp_path / "peers"
    peers.write_text("".join(f"[host n{i}]\naddress = 127.9.{i // 250}.{i % 250 + 1}\n" for i in range(hosts)))
    start(1, args=(*metrics(), "--peers", peers, "--insecure"))
    seen = scrape()
    assert seen.value("pvrdma_peers", state="idle") == hosts
    assert seen.all("pvrdma_peer_state") == []
    assert seen.value("pvrdma_directory_hosts") == hosts


def test_first_thread_is_held_shortly(start):
    """By the shortest of the longest pages of some scrapes: another process can take the CPU meanwhile."""
    peers = [f"--peer=n{number}=127.9.{number // 250}.{number % 250 + 1}" for number in range(500)]
    daemon = start(1, args=(*metrics(), *peers))
    for number in range(2, 100):
        daemon.add_adapter(f"node{number}", number)
    seen = [scrape() for _ in range(10)]
    longest = min(each.value("pvrdma_scrape_longest_page_seconds") for each in seen)
    print(f"longest page: {1e6 * longest:.0f} us")
    assert longest < 0.002
    assert seen[0].value("pvrdma_scrape_pages") > 1 and len(seen[0].all("pvrdma_peer_connections_wanted")) == 500


def test_expiry_of_the_certificate(start, ca):
    start(1, args=(*metrics(), *ca.options("h1")))
    left = scrape().value("pvrdma_tls_certificate_expiry_timestamp_seconds") - time.time()
    assert 29 * 86400 < left <= 30 * 86400


def test_reload_of_the_certificate_changes_its_expiry(start, ca):
    daemon = start(1, args=(*metrics(), *ca.options("h1")))
    ca.sign("h1", days=90)
    daemon.must("reload")
    assert scrape().value("pvrdma_tls_certificate_expiry_timestamp_seconds") - time.time() > 89 * 86400


def test_without_certificates_there_is_no_expiry(start):
    start(1, args=metrics())
    assert scrape().all("pvrdma_tls_certificate_expiry_timestamp_seconds") == []


def test_etcd(start, etcd):
    start(1, args=(*metrics(), "--etcd", etcd.url, "--insecure"))
    wait_until(lambda: scrape().value("pvrdma_directory_etcd_registered") == 1, "the host is registered")
    seen = scrape()
    assert seen.value("pvrdma_directory_etcd_connected") == 1
    assert seen.value("pvrdma_directory_etcd_requests_total") > 0
    etcd.stop()
    wait_until(lambda: scrape().value("pvrdma_directory_etcd_connected") == 0, "etcd is not connected")


# --------------------------------------------------------------------------------- process

def test_values_of_the_process(start_daemon):
    daemon = start_daemon(args=metrics())
    before = daemon.descriptors()
    seen = scrape()
    assert 0 < seen.value("process_resident_memory_bytes") <= 2 * 1024 * daemon.resident()
    # And the connection of the scrape.
    assert before <= seen.value("process_open_fds") <= before + 2
    assert seen.value("process_max_fds") > 100
    assert 0 < seen.value("process_cpu_seconds_total") < PATIENCE
    assert 0 <= time.time() - seen.value("pvrdma_start_time_seconds") < PATIENCE
    version, = daemon.must("version").split()[3].rstrip(","),
    assert seen.value("pvrdma_build_info", version=version) == 1


# ------------------------------------------------------------------------------ documents

def test_each_metric_is_documented(everything):
    assert set(re.findall(r"^\| `(\w+)`", DOC, re.M)) == everything.families


def test_documented_types_and_labels(everything):
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", everything.text, re.M))
    for name, kind in re.findall(r"^\| `(\w+)`[^|]*\| (\w+) \|", DOC, re.M):
        assert types[name] == kind, name
        assert name.endswith("_total") == (kind == "counter"), name


def test_names_have_help_once(everything):
    assert sorted(re.findall(r"^# HELP (\w+) \S", everything.text, re.M)) == sorted(everything.families)


def test_promtool_accepts_all_families(everything):
    done = promtool("check", "metrics", text=everything.text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
