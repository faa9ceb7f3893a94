# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The directory in etcd: a correct etcd, one that fails, and one that sends wrong answers."""

import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon_net import address as own_address
from daemon_process import PATIENCE, wait_until
from etcd import ETCD_HOST, Etcd, FaultyProxy, Host, encode
from etcd_server import EtcdServer
from keys import Authority, openssl

LEASE = 2
G1, G2, G3 = "fd00::1", "fd00::2", "fd00::3"
KEY1 = "pvrdma/hosts/a/gids/red/fd000000000000000000000000000001"
INDEX1 = "pvrdma/gids/red/fd000000000000000000000000000001/a"
V2 = '{"type":"v2"}'
GROUP = "ff1e::1"


@pytest.fixture(name="start")
def fixture_start():
    """A function that starts a Host; each must end well."""
    hosts = []

    def start(name, url, *settings, address="192.0.2.1:7471", lease=LEASE):
        hosts.append(Host(name, f"etcd={url}", f"etcd-lease={lease}", f"address={address}", *settings))
        return hosts[-1]

    yield start
    for host in hosts:
        status = host.end()
        assert status in (0, -signal.SIGKILL), f"{host.name}: status {status}: {host.lines[-40:]}"


def start_pair(etcd, start, lease_of_b=LEASE):
    """a, which has G1, and b, which has found it."""
    a = start("a", etcd.url, address="192.0.2.1:7471")
    b = start("b", etcd.url, address="192.0.2.2:7471", lease=lease_of_b)
    a.announce("red", G1)
    a.wait("log 2 directory: announced as a at 192.0.2.1:7471")
    b.resolve("red", G1, "remote 2 a")
    b.wait("peer a 192.0.2.1:7471")
    return a, b


@pytest.fixture(name="pair")
def fixture_pair(etcd, start):
    return start_pair(etcd, start)


def news(lines, gid=G1):
    return [line for line in lines if line.startswith(f"set red {gid} ")]


def assert_withdrawal_arrives(a, b, gid=G1):
    since = b.mark()
    a.announce("red", gid, present=False)
    b.wait(f"set red {gid} nowhere", since)


def claim(etcd, host, gid, index=True, value=V2):
    """Keys that a client with the rights in etcd can write."""
    etcd.put(f"pvrdma/hosts/{host}/address", '{"address":"192.0.2.66:7471"}')
    etcd.put(f"pvrdma/hosts/{host}/gids/red/{number_of(gid)}", value)
    if index:
        etcd.put(f"pvrdma/gids/red/{number_of(gid)}/{host}", value)


def number_of(gid):
    return socket.inet_pton(socket.AF_INET6, gid).hex()


# ------------------------------------------------------------------------- look-ups

def test_finds_the_host_of_a_gid(etcd, pair):
    a, b = pair
    expected = {
        "pvrdma/hosts/a/address": '{"address":"192.0.2.1:7471"}',
        "pvrdma/hosts/b/address": '{"address":"192.0.2.2:7471"}',
        KEY1: V2,
        INDEX1: V2,
    }
    wait_until(lambda: etcd.keys() == expected, "both hosts and the GID are announced")
    b.resolve("blue", G1, "nowhere")
    b.resolve("red", G2, "nowhere")
    assert a.stats()["entries"] == 0  # a host stores only GIDs that it has looked up
    assert b.stats()["hosts"] == 1


def test_absent_gid_is_requested_again(pair):
    a, b = pair
    b.resolve("red", G2, "nowhere")
    b.wait(f"set red {G2} unknown")
    a.announce("red", G2, gid_type=1)
    b.resolve("red", G2, "remote 1 a")


def test_move_is_seen_at_once(etcd, start, pair):
    a, b = pair
    c = start("c", etcd.url, address="192.0.2.3:7471")
    c.announce("red", G1)
    c.wait(f"log 1 directory: {G1} in fabric red belongs to host a: the claim of an adapter here is refused")
    since = b.mark()
    a.announce("red", G1, present=False)
    c.wait(f"log 2 directory: {G1} in fabric red now belongs to this host")
    b.resolve("red", G1, "remote 2 c")
    assert b.wait("peer c 192.0.2.3:7471", since)


def test_second_claim_is_refused_while_the_first_lives(etcd, start, pair):
    a, b = pair
    c = start("c", etcd.url)
    c.announce("red", G1)
    c.wait("log 1 directory: fd00::1 in fabric red belongs to host a")
    c.watch(2 * LEASE)
    assert KEY1 in etcd.keys()
    assert not news(b.watch(0.1))
    assert b.wait("log 1 directory: host c claims fd00::1 in fabric red: refused, the claim of host a is older")
    # One line, not one for each attempt.
    assert len([line for line in c.lines if "the claim of an adapter" in line]) == 1
    a.end(signal.SIGKILL)
    c.wait("log 2 directory: fd00::1 in fabric red now belongs to this host")


def test_two_hosts_of_one_name(etcd, start, pair):
    other = start("a", etcd.url, address="192.0.2.66:7471")
    other.announce("red", G2)
    other.wait("log 1 directory: etcd has host a at another address")
    other.watch(1.5)
    assert etcd.keys()["pvrdma/hosts/a/address"] == '{"address":"192.0.2.1:7471"}'
    assert len(etcd.keys()) == 4


def test_host_that_dies_disappears_within_its_lease(etcd, pair):
    a, b = pair
    since = b.mark()
    begin = time.monotonic()
    a.end(signal.SIGKILL)
    b.wait(f"set red {G1} nowhere", since)
    assert time.monotonic() - begin > LEASE / 2
    b.wait("forget a", since)
    assert list(etcd.keys()) == ["pvrdma/hosts/b/address"]


def test_host_that_leaves_is_gone_at_once(etcd, start, pair):
    """Long before its lease ends."""
    _, b = pair
    c = start("c", etcd.url, lease=10 * PATIENCE)
    c.announce("red", G2)
    b.resolve("red", G2, "remote 2 c")
    since = b.mark()
    assert c.end() == 0
    b.wait(f"set red {G2} nowhere", since)


def wait_for_leases(etcd, count):
    wait_until(lambda: len(etcd.call("/v3/lease/leases", {}).get("leases", [])) == count, f"there are {count} leases")


def test_host_that_comes_back_takes_its_own_keys(etcd, start):
    # Only the lease of a may end: the others must outlive any pause of a busy machine.
    a, b = start_pair(etcd, start, lease_of_b=10 * PATIENCE)
    wait_for_leases(etcd, 2)
    a.end(signal.SIGKILL)
    again = start("a", etcd.url, address="192.0.2.1:7471", lease=10 * PATIENCE)
    again.announce("red", G1)
    again.wait("log 2 directory: announced as a")
    assert not [line for line in again.lines if "refused" in line]
    # The end of the old lease deletes no key.
    wait_for_leases(etcd, 2)
    assert not news(b.watch(0.5))
    assert KEY1 in etcd.keys()


def test_keys_are_deleted_with_gids(etcd, pair):
    a, _ = pair
    a.announce("red", GROUP)
    wait_until(lambda: f"pvrdma/mcast/red/ff1e{'0' * 27}1/a" in etcd.keys(), "the group is announced")
    a.announce("red", GROUP, present=False)
    a.announce("red", G1, present=False)
    wait_until(lambda: list(etcd.keys()) == ["pvrdma/hosts/a/address", "pvrdma/hosts/b/address"], "the keys are gone")


def test_gid_that_comes_and_goes_quickly(etcd, pair):
    a, _ = pair
    a.tell("\n".join([f"announce red {G2} 2 1\nannounce red {G2} 2 0"] * 200))
    a.announce("red", G3)
    wait_until(lambda: len(etcd.keys("pvrdma/gids/")) == 2, "only the last one is left")
    assert a.stats()["requests"] < 120


def announce_many(host, num):
    host.tell("\n".join(f"announce red fe80::1:{number:x} 2 1" for number in range(num)))


def test_many_gids_are_announced_by_few_requests(etcd, pair):
    a, _ = pair
    before = a.stats()["requests"]
    announce_many(a, 400)
    wait_until(lambda: len(etcd.keys("pvrdma/gids/")) == 401, "all are announced")
    assert a.stats()["requests"] - before < 100


def test_etcd_with_small_transactions_gets_all_gids(tmp_path, start):
    etcd = Etcd(tmp_path, ["--max-txn-ops", 16])
    try:
        announce_many(start("a", etcd.url), 100)
        wait_until(lambda: len(etcd.keys("pvrdma/gids/")) == 100, "all are announced")
    finally:
        etcd.stop()


@pytest.mark.parametrize("group", [GROUP, "::ffff:239.77.0.1"])
def test_groups(etcd, start, pair, group):
    a, b = pair
    c = start("c", etcd.url)
    a.announce("red", group)
    b.announce("red", group)
    b.resolve("red", group, "remote 2 a")
    since = b.mark()
    c.announce("red", group)
    b.wait(f"set red {group} remote 2 c", since)
    since = b.mark()
    a.announce("red", group, present=False)
    b.wait(f"set red {group} not-remote 2 a", since)
    c.end(signal.SIGKILL)
    b.wait(f"set red {group} nowhere", since)
    assert not [line for line in b.lines if line.startswith(f"set red {group} ") and line.endswith(" b")]


def test_address_that_changes(etcd, start, pair):
    a, b = pair
    since = b.mark()
    a.end()
    b.wait("forget a", since)
    start("a", etcd.url, address="192.0.2.11:7471").announce("red", G1)
    b.resolve("red", G1, "remote 2 a")
    b.wait("peer a 192.0.2.11:7471", since)


def test_host_that_is_needed_again_before_it_is_forgotten(etcd, start, pair):
    """Its address stays in use for a while after the last need. The next need, which finds no key, must end it, too."""
    a, b = pair
    c = start("c", etcd.url, lease=3 * LEASE)
    c.tell("need", "a", 1)
    c.wait("peer a 192.0.2.1:7471")
    c.tell("need", "a", 0)
    since = c.mark()
    a.end()
    c.tell("need", "a", 1)
    c.watch(2 * LEASE)
    c.tell("need", "a", 0)
    c.wait("forget a", since)


def test_addresses_that_are_refused_leave_space_in_the_log(etcd, pair):
    """Each host can tell its own."""
    _, b = pair
    for _ in range(30):
        b.tell("refer", "mallory", "nonsense")
        b.watch(0.01)
    since = b.mark()
    etcd.stop()
    b.wait("log 1 directory: etcd at ", since)


# ------------------------------------------------------------- claims and the index

def test_index_entry_without_a_claim(etcd, pair):
    """All hosts of a fabric can write the index, so an entry alone is not believed."""
    _, b = pair
    since = b.mark()
    for name in ("a", "mallory", "b"):
        etcd.put(f"pvrdma/gids/red/{number_of(G2)}/{name}", V2)
    b.resolve("red", G2, "nowhere")
    # A claim of another fabric, and another host's of the same GID, are none for it either.
    etcd.put(f"pvrdma/hosts/a/gids/blue/{number_of(G2)}", V2)
    etcd.put(f"pvrdma/hosts/c/gids/red/{number_of(G2)}", V2)
    b.watch(1.2)
    b.resolve("red", G2, "nowhere")
    assert not [line for line in b.lines[since:] if line.startswith(f"set red {G2} remote")]


def test_gid_in_use_is_not_taken_over(etcd, pair):
    """A younger claim does not win, not even if the owner's entry of the index is deleted."""
    _, b = pair
    since = b.mark()
    etcd.delete(INDEX1)
    claim(etcd, "mallory", G1)
    b.wait("log 1 directory: host mallory claims fd00::1 in fabric red: refused, the claim of host a is older")
    assert not [line for line in news(b.lines[since:]) if "mallory" in line]


def test_policy(tmp_path, etcd, pair, start):
    """A claim that it does not allow is refused, even the oldest; it can be read again."""
    a, _ = pair
    policy = tmp_path / "policy"
    policy.write_text("[host a]\ngids blue = fd00::/64\n[host c]\ngids red = fd00::/64\n")
    d = start("d", etcd.url, f"policy={policy}")
    d.resolve("red", G1, "nowhere")
    d.wait(f"log 1 directory: host a claims {G1} in fabric red: refused, the policy does not allow it")
    claim(etcd, "c", G1)
    d.resolve("red", G1, "remote 2 c")
    a.announce("red", GROUP)
    wait_until(lambda: etcd.keys("pvrdma/mcast/"), "a is a member")
    d.resolve("red", GROUP, "nowhere")
    assert not [line for line in d.lines if line.startswith("set") and line.endswith(" a")]
    policy.write_text("[host *]\n")
    since = d.mark()
    d.tell("reload")
    d.resolve("red", GROUP, "remote 2 a")
    policy.write_text("[host *]\ngids red = fd01::/64\n")
    d.tell("reload")
    d.wait(f"set red {G1} unknown", since)
    d.resolve("red", G1, "nowhere")


@pytest.mark.parametrize("value", ["", "{", "[1]", '{"type":"v3"}', '{"type":2}', "x" * 2000, '{"type":"v2"}\x00'])
def test_malformed_claims(etcd, pair, value):
    _, b = pair
    claim(etcd, "mallory", G2, value=value)
    b.resolve("red", G2, "nowhere")
    b.wait(f"log 1 directory: the value of pvrdma/hosts/mallory/gids/red/{number_of(G2)} in etcd is invalid")
    claim(etcd, "c", G2)
    b.resolve("red", G2, "remote 2 c")


def test_index_of_very_many_hosts(etcd, pair):
    """Newer entries do not push out older ones, and the work for a GID is bounded."""
    a, b = pair
    a.announce("red", G2)
    wait_until(lambda: f"pvrdma/gids/red/{number_of(G2)}/a" in etcd.keys(), "a has claimed it")
    for number in range(300):
        etcd.put(f"pvrdma/gids/red/{number_of(G2)}/{number:03}-{'m' * 50}", V2)
    b.resolve("red", G2, "remote 2 a")
    assert b.stats()["hosts"] < 12


def test_index_entries_without_claims_hide_no_gid(tmp_path, etcd, start):
    """Entries before the owner's that no look-up gets past: the owner deletes them, and none that has a claim."""
    policy = tmp_path / "policy"
    policy.write_text("[host *]\n[host banned]\ngids blue = fd00::/64\n")
    a, b = (start(name, etcd.url, f"policy={policy}") for name in "ab")
    index = f"pvrdma/gids/red/{number_of(G2)}/"
    claim(etcd, "banned", G2)
    for number in range(60):
        etcd.put(f"{index}m{number}", V2)
    for name in ("not a name", "x" * 300, "", "tail/", "tail/m", "tail/a", "\x01"):
        etcd.put(index + name, V2)
    a.announce("red", G2)
    b.resolve("red", G2, "remote 2 a")
    wait_until(lambda: list(etcd.keys(index)) == [index + "a"], "the others are gone")
    # A claim that is older, or younger: it is no stray.
    claim(etcd, "c", G3)
    a.announce("red", G3)
    a.wait(f"log 1 directory: {G3} in fabric red belongs to host c")
    assert sorted(etcd.keys(f"pvrdma/gids/red/{number_of(G3)}/").values()) == [V2, V2]


DOC = (Path(__file__).resolve().parents[2] / "docs" / "multi-host.md").read_text()


def run_documented(etcd, *also):
    """The commands of the chapter on rights, and those of `also` instead of host1's for other hosts."""
    commands = re.findall(r"^any\$ +(etcdctl (?:role|user|auth) .*)$", DOC, re.M)
    assert len(commands) == 15
    own = [command for command in commands if "host1" in command]
    others = [command.replace("host1", name) for name in also for command in own]
    for command in [*commands[:-3], *others, *commands[-3:]]:
        subprocess.run([*shlex.split(command), "--endpoints", etcd.url], check=True, capture_output=True,
                       env={**os.environ, "ETCDCTL_API": "3"})


def etcdctl(etcd, user, *words):
    done = subprocess.run(["etcdctl", "--endpoints", etcd.url, "--user", f"{user}:PASSWORD1", *words], check=False,
                          capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"})
    return done.returncode == 0


def test_documented_rights(tmp_path, etcd, start):
    """Hosts with them find each other, and none can write the keys of another one or of another fabric."""
    run_documented(etcd, "host2", "host3")
    (tmp_path / "password").write_text("PASSWORD1\n")
    one, two = (start(name, etcd.url, f"etcd-user={name}", f"etcd-password-file={tmp_path / 'password'}")
                for name in ("host1", "host2"))
    for gid in (G1, GROUP):
        one.announce("default", gid)
        two.resolve("default", gid, "remote 2 host1")
    since, number = two.mark(), number_of(G1)
    for key in ("hosts/host1/address", f"hosts/host1/gids/default/{number}", f"hosts/host1x/gids/default/{number}",
                f"gids/red/{number}/host3", f"mcast/red/{number_of(GROUP)}/host3", "moves/red/11"):
        assert not etcdctl(etcd, "host3", "put", f"pvrdma/{key}", V2), key
        assert not etcdctl(etcd, "host3", "del", f"pvrdma/{key}"), key
    # All that it can do to this GID.
    assert etcdctl(etcd, "host3", "del", f"pvrdma/gids/default/{number}/host1")
    for key in (f"hosts/host3/gids/default/{number}", f"gids/default/{number}/host3"):
        assert etcdctl(etcd, "host3", "put", f"pvrdma/{key}", V2), key
    two.wait(f"log 1 directory: host host3 claims {G1} in fabric default: refused, the claim of host host1 is older")
    assert not [line for line in two.lines[since:] if line.startswith("set") and "host3" in line]
    claim_state(one, fabric="default")
    claims(one, "won")
    claim_state(two, fabric="default")
    claims(two, "lost host1")
    # A fabric for which the host has no role: refused and logged there.
    claim_state(two, number=2)
    claims(two, "failed etcd refuses the claim", number=2)
    one.announce("red", G2)
    one.wait("log 1 directory: etcd refuses this host's keys: etcdserver: permission denied")


# ------------------------------------------------------------------- claims of states

TOKEN, TOKEN2 = "11" * 16, "22" * 16
MOVE = f"pvrdma/moves/red/{hashlib.sha256(bytes.fromhex(TOKEN)).hexdigest()}"
LIFE = 600


def claim_state(host, number=1, token=TOKEN, waits=True, fabric="red", life=LIFE, load=1):
    """The answer is a line `claimed 02000000000N ...`."""
    host.tell("claim", fabric, f"{number:012x}", token, life, int(waits), load)


def value_of(host, load=1):
    return f'{{"host":"{host}","load":"{load:016x}"}}'


def claims(host, answer, since=0, number=1):
    return host.wait(f"claimed {number:012x} {answer}", since)


def test_first_claim_of_a_state_wins(etcd, pair):
    a, b = pair
    claim_state(a)
    claims(a, "won")
    assert etcd.keys()[MOVE] == value_of("a")
    assert TOKEN not in str(etcd.keys())
    claim_state(b)
    claims(b, "lost a")
    since = a.mark()
    claim_state(a)
    claims(a, "won", since)
    claim_state(b, token=TOKEN2)
    claims(b, "won")
    assert etcd.keys()[MOVE] == value_of("a")


@pytest.mark.parametrize("value", [value_of("a", 1), '{"host":"a"}', '{"host":"a","load":7}', '{"host":"a","load":""}'])
@pytest.mark.parametrize("load", [0, 2])
def test_second_load_of_the_winner_is_stale(etcd, pair, value, load):
    """The first one may have run. An older pvrdmad has put no number of its load."""
    etcd.put(MOVE, value)
    claim_state(pair[0], load=load)
    claims(pair[0], "stale")
    assert etcd.keys()[MOVE] == value


def test_two_claims_at_once_have_one_winner(pair):
    for number in range(1, 21):
        for host in pair:
            claim_state(host, number, f"{number:032x}", waits=number % 2)
        answers = sorted(claims(host, "", number=number).split()[2] for host in pair)
        assert answers == ["lost", "won"], number


def test_claim_outlives_its_host_for_a_time(etcd, pair):
    a, b = pair
    claim_state(a, life=LEASE + 2)
    claims(a, "won")
    a.end(signal.SIGKILL)
    wait_until(lambda: KEY1 not in etcd.keys(), "the lease of a has ended")
    claim_state(b)
    claims(b, "lost a")
    wait_until(lambda: MOVE not in etcd.keys(), "the claim has ended")
    since = b.mark()
    claim_state(b)
    claims(b, "won", since)


def test_claim_without_an_etcd(etcd, pair):
    """An adapter that waits is refused in time. One that runs claims its state when etcd is back."""
    a, b = pair
    etcd.pause()
    begin = time.monotonic()
    claim_state(a, waits=False)
    claim_state(b, token=TOKEN2)
    claims(b, "failed etcd does not respond")
    assert time.monotonic() - begin > 1.5
    etcd.kill()
    etcd.start()
    claims(a, "won")
    assert etcd.keys()[MOVE] == value_of("a")


def test_claim_whose_answer_is_lost(etcd, start):
    """etcd has the key, and the host does not know it: it asks again, and has won."""
    proxy, lost = FaultyProxy(etcd), []

    def lose_one(handler):
        if handler.path != "/v3/kv/txn" or lost:
            return FaultyProxy.FORWARD
        body = FaultyProxy.body(handler)
        if encode(MOVE).encode() not in body:
            etcd.call(handler.path, json.loads(body))
            return FaultyProxy.reply(handler, 200, b"{}")
        lost.append(etcd.call(handler.path, json.loads(body)))
        return None

    try:
        a = start("a", proxy.url)
        a.wait("log 2 directory: announced as a")
        proxy.mode = lose_one
        claim_state(a, waits=False)
        claims(a, "won")
        assert lost and lost[0]["succeeded"]
    finally:
        proxy.close()


@pytest.mark.parametrize("value, winner", [('{"host":"c"}', "c"), ('{"host":""}', "?"), ('{"host":"a b"}', "?"),
                                           ('{"host":7}', "?"), ("[]", "?"), ("", "?"),
                                           ('{"host":"' + "x" * 64 + '"}', "?")])
def test_claim_of_a_stranger(etcd, pair, value, winner):
    etcd.put(MOVE, value)
    claim_state(pair[0])
    claims(pair[0], f"lost {winner}")


@pytest.mark.parametrize("waits", [True, False])
def test_claim_that_etcd_refuses(etcd, start, waits):
    proxy = FaultyProxy(etcd)
    try:
        a = start("a", proxy.url)
        a.wait("log 2 directory: announced as a")
        refusal = json.dumps({"error": "etcdserver: permission denied", "code": 7}).encode()
        proxy.mode = lambda handler: FaultyProxy.reply(handler, 403, refusal)
        claim_state(a, waits=waits)
        claims(a, "failed etcd refuses the claim")
        a.wait("log 1 directory: etcd refuses the claim of an adapter's state: etcdserver: permission denied")
    finally:
        proxy.close()


def test_newer_claim_of_an_adapter_replaces_the_last_one(etcd, pair):
    a, _ = pair
    etcd.pause()
    claim_state(a, waits=False)
    a.watch(0.2)
    claim_state(a, token=TOKEN2, waits=False)
    a.watch(0.2)
    etcd.resume()
    claims(a, "won")
    assert len([line for line in a.watch(1) + a.lines if line.startswith("claimed ")]) == 1


# ------------------------------------------------- answers of hosts against those of etcd

def test_gid_that_has_left_is_absent_at_once(pair):
    _, b = pair
    since = b.mark()
    b.tell("moved a red", G1)
    b.wait(f"set red {G1} unknown", since)
    b.wait(f"set red {G1} nowhere", since)  # for a second, although etcd still has the key
    b.resolve("red", G1, "remote 2 a")


def lose_key(etcd, b):
    """The keys of G2 are gone while its host z is connected. Return: the number of the next line."""
    claim(etcd, "z", G2)
    b.resolve("red", G2, "remote 2 z")
    b.tell("up z")
    since = b.mark()
    for key in (f"pvrdma/hosts/z/gids/red/{number_of(G2)}", f"pvrdma/gids/red/{number_of(G2)}/z"):
        etcd.delete(key)
    return since


def test_lost_key_of_a_host_that_still_has_the_gid(etcd, pair):
    _, b = pair
    since = lose_key(etcd, b)
    for _ in range(2):
        b.wait(f"where z red {G2}", since)
        since = b.mark()
        b.tell("located z red", G2, 2)
    assert not news(b.watch(1), G2)
    b.wait(f"where z red {G2}", since)
    b.tell("located z red", G2, 0)
    b.wait(f"set red {G2} nowhere", since)


def test_lost_key_of_a_host_that_does_not_answer(etcd, pair):
    _, b = pair
    since = lose_key(etcd, b)
    b.wait(f"where z red {G2}", since)
    b.wait(f"set red {G2} nowhere", since)


def test_answer_that_contradicts_etcd(pair):
    _, b = pair
    b.tell("up a")
    b.tell("located mallory red", G1, 2)
    b.tell("located a red", G1, 0)
    b.tell("moved mallory red", G1)
    assert not news(b.watch(0.5))


# --------------------------------------------------------------------------- outages

def test_stopped_etcd_costs_nothing_that_is_known(etcd, pair):
    a, b = pair
    since = b.mark()
    etcd.stop()
    b.wait(f"log 1 directory: etcd at {etcd.url}: ", since)
    b.tell("resolve red", G2)
    assert not news(b.watch(2 * LEASE + 1))
    for _ in range(3):
        etcd.start()
        etcd.kill()
    etcd.start()
    a.announce("red", G2)
    b.resolve("red", G2, "remote 2 a")
    assert not news(b.watch(2 * LEASE))
    assert len(etcd.keys()) == 6
    # Changes arrive again.
    assert_withdrawal_arrives(a, b)


def test_etcd_that_has_lost_its_data(etcd, pair):
    a, b = pair
    etcd.lose_data()
    wait_until(lambda: len(etcd.keys()) == 4, "the keys are written again")
    a.wait("log 1 directory: etcd has lost this host's lease")
    assert not news(b.watch(2 * LEASE))
    assert_withdrawal_arrives(a, b)


@pytest.mark.parametrize("key", [KEY1, INDEX1, "pvrdma/hosts/a/address", f"pvrdma/mcast/red/ff1e{'0' * 27}1/a"])
def test_own_keys_that_are_deleted(etcd, pair, key):
    """Behind the back of their host, whose lease lives: it writes them again."""
    a, _ = pair
    a.announce("red", GROUP)
    wait_until(lambda: key in etcd.keys(), "it is announced")
    etcd.delete(key)
    wait_until(lambda: key in etcd.keys(), "it is announced again")
    a.wait("log 1 directory: etcd has lost 1 of this host's keys: they are written again")


def test_etcd_restored_from_an_old_snapshot(etcd, start):
    """The lease is in the snapshot, and lives on. Keys written since are written again, and changes are seen."""
    a, b = (start(name, etcd.url, lease=6) for name in "ab")
    a.announce("red", G1)
    b.resolve("red", G1, "remote 2 a")
    snapshot = etcd.save()
    a.announce("red", G2)
    b.resolve("red", G2, "remote 2 a")
    for number in range(20):
        etcd.put("other", str(number))
    before = etcd.keys()
    etcd.restore(snapshot)
    wait_until(lambda: etcd.keys() == before, "all keys are there again")
    b.wait("log 1 directory: etcd has lost data: all keys are read and written again")
    assert not [line for line in b.lines if "nowhere" in line]
    assert_withdrawal_arrives(a, b)


def test_deleted_key_that_a_snapshot_brings_back(etcd, start):
    """Its lease lives, so the host takes another one. It has seen a later revision: no other host has written since."""
    a = start("a", etcd.url, lease=6)
    a.announce("red", G1)
    a.announce("red", G2)
    wait_until(lambda: len(etcd.keys()) == 5, "both are announced")
    snapshot = etcd.save()
    a.announce("red", G2, present=False)
    wait_until(lambda: len(etcd.keys()) == 3, "it is deleted")
    kept = etcd.keys()
    etcd.restore(snapshot)
    wait_until(lambda: etcd.keys() == kept, "it has ended with its lease, and the others are there")


def test_two_members_that_disagree(tmp_path, etcd, start):
    """Two URLs lead to different clusters: the hosts write and read all keys in the second, once it is in use."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = EtcdServer(folder, own_address(ETCD_HOST - 1))
    other.start()
    try:
        for number in range(20):
            etcd.put("other", str(number))
        a, b = (start(name, f"{etcd.url},{other.url}") for name in "ab")
        a.announce("red", G1)
        b.resolve("red", G1, "remote 2 a")
        etcd.kill()
        wait_until(lambda: len(other.keys()) == 4, "all keys are there, too")
        b.wait("log 1 directory: etcd has lost data: all keys are read and written again")
        assert not [line for line in b.lines if "nowhere" in line]
        assert_withdrawal_arrives(a, b)
        for host in (a, b):
            host.end()
    finally:
        other.kill()


def test_compaction(etcd, pair):
    a, b = pair
    revision = 0
    for number in range(20):
        revision = etcd.put("other", str(number))["header"]["revision"]
    etcd.kill()
    etcd.start()
    etcd.call("/v3/kv/compaction", {"revision": revision})
    wait_until(lambda: b.stats()["connected"], "it is connected again")
    b.watch(1)
    assert len(news(b.lines)) == 1
    assert_withdrawal_arrives(a, b)


def test_several_urls(etcd, start):
    dead = f"http://{own_address(1)}:2379"
    a = start("a", f"{dead},{etcd.url}")
    a.announce("red", G1)
    a.wait(f"log 2 directory: etcd at {etcd.url} responds")
    start("b", f"{dead},{etcd.url}").resolve("red", G1, "remote 2 a")


def test_etcd_that_comes_later(etcd, start):
    etcd.stop()
    a = start("a", etcd.url)
    a.announce("red", G1)
    a.watch(0.5)
    assert a.stats()["requests"] < 10 and not a.stats()["connected"]
    etcd.start()
    a.wait("log 2 directory: announced as a")
    wait_until(lambda: KEY1 in etcd.keys(), "the GID is announced")


# ------------------------------------------------------------------------ credentials

def enable_users(etcd, folder, users, roles):
    """`users`: the roles of each; `roles`: prefixes that each can read and write, or only read. Return: password files."""
    calls = [("/v3/auth/user/add", {"name": "root", "password": "r"}), ("/v3/auth/user/grant", {"user": "root", "role": "root"})]
    for role, (write, read) in roles.items():
        calls.append(("/v3/auth/role/add", {"name": role}))
        for kind, prefixes in (("READWRITE", write), ("READ", read)):
            calls += [("/v3/auth/role/grant", {"name": role, "perm": {
                "permType": kind, "key": encode(prefix), "range_end": encode(prefix[:-1] + "0")}}) for prefix in prefixes]
    for user, own in users.items():
        calls.append(("/v3/auth/user/add", {"name": user, "password": f'{user}"w'}))
        calls += [("/v3/auth/user/grant", {"user": user, "role": role}) for role in own]
        (folder / user).write_text(f'{user}"w\n')
    for path, body in calls:
        try:
            etcd.call(path, body)
        except Exception as why:  # "root" has the role already in some versions
            assert "root" in json.dumps(body), why
    etcd.call("/v3/auth/enable", {})
    return {user: (f"etcd-user={user}", f"etcd-password-file={folder / user}") for user in users}


def test_user_and_password(tmp_path, etcd, start):
    user = enable_users(etcd, tmp_path, {"pvrdma": ["hosts"]}, {"hosts": (["pvrdma/"], [])})["pvrdma"]
    bad = tmp_path / "bad"
    bad.write_text("guess\n")
    a = start("a", etcd.url, *user)
    a.announce("red", G1)
    b = start("b", etcd.url, *user)
    b.resolve("red", G1, "remote 2 a")
    assert_withdrawal_arrives(a, b)
    c = start("c", etcd.url, "etcd-user=pvrdma", f"etcd-password-file={bad}")
    d = start("d", etcd.url)
    d.announce("red", G1)
    for host in (c, d):
        host.tell("resolve red", G1)
    d.wait("log 1 directory: etcd refuses")
    c.watch(2)
    # With a wrong password or without a user there is no answer, and few requests.
    for host in (c, d):
        assert host.stats()["requests"] < 40 and not news(host.lines)


def test_watches_after_the_token_has_expired(tmp_path, start):
    """Its stream has the old token: etcd refuses new watches on it, although it reads keys with a new token."""
    etcd = Etcd(tmp_path, ["--auth-token-ttl", 1])
    try:
        user = enable_users(etcd, tmp_path, {"pvrdma": ["hosts"]}, {"hosts": (["pvrdma/"], [])})["pvrdma"]
        a, b = (start(name, etcd.url, *user, lease=10) for name in "ab")
        a.announce("red", G1)
        b.resolve("red", G1, "remote 2 a")
        b.watch(3)
        a.announce("red", G2)
        b.resolve("red", G2, "remote 2 a")
        since = b.mark()
        a.announce("red", G2, present=False)
        b.wait(f"set red {G2} nowhere", since)
        assert b.stats()["requests"] < 40, b.lines
        a.end()
        b.end()
    finally:
        etcd.stop()


def as_root(etcd, *words, text=None):
    """Repeated while etcd has no leader, as on a busy machine."""
    argv = ["etcdctl", "--endpoints", etcd.url, "--user", "root:r", "--command-timeout", f"{PATIENCE}s", *words]
    wait_until(lambda: subprocess.run(argv, check=False, input=text, text=True, stdout=subprocess.PIPE,
                                      env={**os.environ, "ETCDCTL_API": "3"}).returncode == 0, " ".join(words))


def is_found(a, b, gid):
    """After a change of rights."""
    a.announce("red", gid)
    b.resolve("red", gid, "remote 2 a")
    assert_withdrawal_arrives(a, b, gid)


@pytest.mark.parametrize("bits", [2048, 4096])
def test_rights_that_change(tmp_path, start, bits):
    """A token with a signature has the revision of the rights, and etcd refuses it after any change of them."""
    openssl("genrsa", "-out", tmp_path / "jwt.key", bits)
    openssl("rsa", "-in", tmp_path / "jwt.key", "-pubout", "-out", tmp_path / "jwt.pub")
    etcd = Etcd(tmp_path, ["--auth-token", f"jwt,pub-key={tmp_path}/jwt.pub,priv-key={tmp_path}/jwt.key,"
                                           "sign-method=RS256,ttl=1h"])
    try:
        user = enable_users(etcd, tmp_path, {"pvrdma": ["hosts"]}, {"hosts": (["pvrdma/"], [])})["pvrdma"]
        a, b = (start(name, etcd.url, *user, lease=10) for name in "ab")
        is_found(a, b, G1)
        as_root(etcd, "role", "grant-permission", "hosts", "read", "other")
        is_found(a, b, G2)
        a.end()
        b.end()
    finally:
        etcd.stop()


def test_password_that_changes(tmp_path, etcd, start):
    user = enable_users(etcd, tmp_path, {"pvrdma": ["hosts"]}, {"hosts": (["pvrdma/"], [])})["pvrdma"]
    a, b = (start(name, etcd.url, *user) for name in "ab")
    is_found(a, b, G1)
    (tmp_path / "pvrdma").write_text("another\n")
    as_root(etcd, "user", "passwd", "pvrdma", "--interactive=false", text="another\n")
    is_found(a, b, G2)


def test_outage_needs_no_new_login(tmp_path, etcd, start):
    """A login costs etcd much: many hosts that log in after each outage keep it busy."""
    user = enable_users(etcd, tmp_path, {"pvrdma": ["hosts"]}, {"hosts": (["pvrdma/"], [])})["pvrdma"]
    proxy, logins, outage = FaultyProxy(etcd), [], []

    def mode(handler):
        if handler.path == "/v3/auth/authenticate":
            logins.append(time.monotonic())
        if not outage:
            return proxy.FORWARD
        outage.append(handler.path)
        return proxy.reply(handler, 503, b"{}")

    proxy.mode = mode
    a = start("a", proxy.url, *user)
    a.announce("red", G1)
    a.wait("log 2 directory: announced as a")
    outage.append("begin")
    wait_until(lambda: (a.read(), len(outage) > 4)[1], "some calls have failed")
    since = a.mark()
    outage.clear()
    a.wait(f"log 2 directory: etcd at {proxy.url} responds", since)
    assert len(logins) == 1
    proxy.close()


def test_slow_login_is_waited_for(tmp_path, etcd, start):
    """As that of a thousand hosts at once. A login that is given up and repeated would take as long again."""
    user = enable_users(etcd, tmp_path, {"pvrdma": ["hosts"]}, {"hosts": (["pvrdma/"], [])})["pvrdma"]
    proxy = FaultyProxy(etcd)

    def mode(handler):
        if handler.path == "/v3/auth/authenticate":
            time.sleep(7)
        return proxy.FORWARD

    proxy.mode = mode
    a = start("a", proxy.url, *user)
    a.wait("log 2 directory: announced as a")
    proxy.close()


def test_tls(tmp_path, start):
    ca, other = Authority(tmp_path), Authority(tmp_path, "other")
    server = ca.sign("server", names=[], extra=[f"subjectAltName=IP:{own_address(ETCD_HOST)}"])
    client = ca.sign("client")
    args = ["--cert-file", server[0], "--key-file", server[1], "--trusted-ca-file", ca.cert, "--client-cert-auth"]
    etcd = Etcd(tmp_path, args, scheme="https")
    try:
        settings = [f"etcd-ca={ca.cert}", f"etcd-cert={client[0]}", f"etcd-key={client[1]}"]
        a = start("a", etcd.url, *settings)
        a.announce("red", G1)
        b = start("b", etcd.url, *settings)
        b.resolve("red", G1, "remote 2 a")
        assert_withdrawal_arrives(a, b)
        # The server's authority is not trusted, or the client has no certificate.
        for wrong in [[f"etcd-ca={other.cert}", *settings[1:]], settings[:1]]:
            c = start("c", etcd.url, *wrong)
            c.tell("resolve red", G1)
            c.watch(1)
            assert not news(c.lines) and not c.stats()["connected"], c.lines
            c.end()
        a.end()
        b.end()
    finally:
        etcd.stop()


# ----------------------------------------------------------------------------- bounds

def test_cache_is_bounded(etcd, start, pair):
    a, _ = pair
    small = start("small", etcd.url, "cache=10")
    for number in range(100, 160):
        a.announce("red", f"fd00::{number:x}")
    for number in range(100, 160):
        small.resolve("red", f"fd00::{number:x}", "remote 2 a")
    stats = small.stats()
    assert stats["entries"] == 10 and stats["watches"] <= 11
    assert len([line for line in small.lines if " unknown " in line]) >= 50


def wrong_types(handler):
    value = encode('{"host":"' + "x" * 100 + '","type":"v2"}')
    kvs = [{"key": 7, "value": value, "mod_revision": "-1"}, [], None]
    FaultyProxy.reply(handler, 200, json.dumps({
        "header": {"revision": "99999999999999999999", "raft_term": {}}, "ID": "12; DROP", "succeeded": "yes",
        "responses": [{"response_range": {"kvs": kvs}}] * 64, "result": {"TTL": [], "watch_id": "abc"},
    }).encode())


def wrong_values(handler):
    """Correct replies, but wrong values of the keys."""
    body = json.loads(FaultyProxy.body(handler) or b"{}")
    keys = ["k", "pvrdma/gids/red/x/../../etc", "pvrdma/gids/red/x/" + "h" * 100, "pvrdma/gids/red/x/mallory", "/"]
    values = [V2, '{"type":"v9"}', "[" * 1000, "", "\x00", '{"address":"nonsense"}']
    responses = [{"response_range": {"kvs": [{"key": encode(keys[i % len(keys)]), "value": encode(values[i % len(values)]),
                                              "mod_revision": "5"}]}} for i in range(len(body.get("success", [])))]
    FaultyProxy.reply(handler, 200, json.dumps({"header": {"revision": "7", "raft_term": "2"}, "responses": responses,
                                         "ID": "77", "TTL": "2"}).encode())


def huge(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(4096):
        handler.wfile.write(b'{"x":"' + b"y" * 65536)


def endless_lines(handler):
    handler.send_response(200)
    handler.end_headers()
    end = time.monotonic() + 3
    while time.monotonic() < end:
        handler.wfile.write(b'{"result":{"watch_id":"1","events":[{}]}}\n' * 1000)


def slow(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(8):
        handler.wfile.write(b"{")
        time.sleep(1)


def redirect(handler):
    handler.send_response(302)
    handler.send_header("Location", "file:///etc/passwd")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def no_lease(handler):
    """The lease is lost, and no other one is granted, as to a user without the right."""
    if "/lease/" not in handler.path:
        return FaultyProxy.FORWARD
    if handler.path.endswith("/keepalive"):
        return FaultyProxy.reply(handler, 200, b'{"result":{"TTL":"0"}}')
    return FaultyProxy.reply(handler, 403, b'{"error":"etcdserver: permission denied","code":7}')


MODES = {
    "no_lease": no_lease,
    "wrong_json": lambda handler: FaultyProxy.reply(handler, 200, b"{not json"),
    "wrong_types": wrong_types,
    "wrong_values": wrong_values,
    "deep_json": lambda handler: FaultyProxy.reply(handler, 200, b"[" * 100000),
    "huge": huge,
    "endless_lines": endless_lines,
    "slow": slow,
    "silent": lambda handler: time.sleep(8),
    "closing": lambda handler: handler.connection.close(),
    "server_error": lambda handler: FaultyProxy.reply(handler, 503, b'{"error":"etcdserver: no leader","code":14}'),
    "redirect": redirect,
    "no_http": lambda handler: handler.connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 100),
}


def check_mode(etcd, number, mode):
    proxy, gid = FaultyProxy(etcd), 0xB00 + number
    b = Host(f"proxy-{number}", f"etcd={proxy.url}", f"etcd-lease={LEASE}", "address=192.0.2.2:7471")
    try:
        b.resolve("red", G1, "remote 2 a")
        before, served, since, begin = b.stats(), proxy.served, b.mark(), time.monotonic()
        proxy.mode = mode
        b.tell("resolve red", G3)
        b.announce("red", f"fd00::{gid:x}")
        b.watch(4)
        stats, seconds = b.stats(), time.monotonic() - begin
        assert stats["rss"] - before["rss"] < 64 << 20, (before, stats)
        assert proxy.served - served < 40 + 10 * seconds, b.lines[since:]
        assert stats["cpu"] - before["cpu"] < 0.9 * seconds, (before, stats)
        if mode is not wrong_values:
            assert not [line for line in news(b.lines[since:]) if "unknown" in line or "nowhere" in line]
        proxy.mode = None
        b.resolve("red", G2, "remote 2 a")
        wait_until(lambda: f"pvrdma/gids/red/fd00{gid:028x}/{b.name}" in etcd.keys(), "its own GID is announced")
        b.resolve("red", G1, "remote 2 a")
        assert b.end() == 0
    finally:
        proxy.close()
        b.end(signal.SIGKILL)


@pytest.fixture(scope="module", name="checked_modes")
def fixture_checked_modes(tmp_path_factory):
    """All modes at the same time, as they mostly wait: a Future of each."""
    etcd = Etcd(tmp_path_factory.mktemp("etcd"))
    a = Host("a", f"etcd={etcd.url}", f"etcd-lease={LEASE}", "address=192.0.2.1:7471")
    try:
        for gid in (G1, G2):
            a.announce("red", gid)
        with ThreadPoolExecutor(len(MODES)) as pool:
            futures = {name: pool.submit(check_mode, etcd, number, MODES[name]) for number, name in enumerate(MODES)}
        assert a.end() == 0
        return futures
    finally:
        a.end(signal.SIGKILL)
        etcd.stop()


@pytest.mark.parametrize("mode", MODES)
def test_etcd_with_wrong_answers(checked_modes, mode):
    """Memory, CPU time and requests are bounded, known GIDs stay, and all is well after the fault."""
    checked_modes[mode].result()


def refuse_watches(handler):
    """As newer versions do: they do not tell which one."""
    if not handler.path.endswith("/watch"):
        return FaultyProxy.FORWARD
    result = {"watch_id": "-1", "created": True, "canceled": True, "cancel_reason": "etcdserver: permission denied"}
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(json.dumps({"result": result}).encode() + b"\n")
    return time.sleep(0.2)


def test_watches_that_are_refused(etcd, start):
    """Changes arrive nevertheless, by reads that have a rate; watches return when they are permitted."""
    proxy = FaultyProxy(etcd)
    try:
        a = start("a", etcd.url)
        for gid in (G1, G2):
            a.announce("red", gid)
        proxy.mode = refuse_watches
        b = start("b", proxy.url)
        for gid in (G1, G2):
            b.resolve("red", gid, "remote 2 a")
        b.wait("log 1 directory: etcd refuses watches: etcdserver: permission denied; keys are read again in 1 s")
        assert_withdrawal_arrives(a, b)
        # The read that has found the withdrawal came with a new try to watch.
        wait_until(lambda: b.stats()["watches"] == 0, "the try is refused")
        assert b.stats()["requests"] < 60, b.stats()
        proxy.mode = None
        wait_until(lambda: b.stats()["watches"], "b watches")
        since = b.mark()
        a.announce("red", G2, present=False)
        b.wait(f"set red {G2} nowhere", since)
    finally:
        proxy.close()


def test_text_of_etcd_is_escaped(etcd, start):
    """Control characters and newlines of an error or a key make no log lines, and no commands of a terminal."""
    proxy = FaultyProxy(etcd)
    try:
        refusal = json.dumps({"error": "no\nlog 0 forged\r\x1b[2J\x7f\u202e", "code": 7}).encode()
        proxy.mode = lambda handler: FaultyProxy.reply(handler, 403, refusal)
        a = start("a", proxy.url)
        a.tell("resolve red", G1)
        a.wait("log 1 directory: etcd refuses look-ups: no\\x0alog 0 forged\\x0d\\x1b[2J\\x7f\\xe2\\x80\\xae")
        assert not [line for line in a.lines if line.startswith("log 0")]
    finally:
        proxy.close()


# --------------------------------------------------------------------------- settings

@pytest.mark.parametrize("settings, says", [
    (["etcd=192.0.2.1:2379"], "etcd '192.0.2.1:2379' is not a URL such as https://192.0.2.10:2379"),
    (["etcd=http://x,ftp://y"], "etcd 'ftp://y' is not a URL"),
    (["etcd=" + ",".join(["http://x"] * 9)], "etcd: more than 8 URLs"),
    (["etcd=http://x", "etcd-prefix=pvrdma"], "etcd-prefix 'pvrdma': expected letters"),
    (["etcd=http://x", "etcd-lease=1"], "etcd-lease '1' is not a number of seconds from 2 to 3600"),
    (["etcd=http://x", "etcd-cert=/c"], "etcd-cert and etcd-key go together"),
    (["etcd=http://x", "etcd-user=u"], "etcd-user and etcd-password-file go together"),
    (["etcd=http://192.0.2.1:2379"], "etcd http://192.0.2.1:2379 without TLS: give an https URL"),
    (["etcd=https://x,http://etcd.example:2379"], "etcd http://etcd.example:2379 without TLS"),
    (["etcd=http://[2001:db8::1]:2379"], "etcd http://[2001:db8::1]:2379 without TLS"),
    (["etcd=http://127.0.0.1.example:2379"], "etcd http://127.0.0.1.example:2379 without TLS"),
    (["etcd=http://127.0.0.1@192.0.2.1:2379"], "etcd 'http://127.0.0.1@192.0.2.1:2379' is not a URL"),
    (["etcd=https://x\nlog"], "etcd 'https://x\nlog' is not a URL"),
    (["etcd=https://x", "etcd-user=u", "etcd-password-file=/none"], "cannot read etcd-password-file /none: No such"),
    (["etcd-lease=5"], "there are settings of etcd, but not etcd = URL itself"),
])
def test_mistakes(settings, says):
    host = Host("a", *settings, expect_error=True)
    output = host.child.communicate(timeout=PATIENCE)[0].decode()
    assert host.child.returncode == 1
    assert output.startswith(f"error {says}"), output


@pytest.mark.parametrize("settings", [["etcd=http://192.0.2.1:2379", "insecure=on"], ["etcd=http://localhost:1"],
                                      ["etcd=http://[::1]:1"], ["etcd=http://127.9.9.9:1/path"]])
def test_http_to_loopback_or_by_name(start, settings):
    """Plain http needs no word on this machine, and `insecure` to others."""
    host = Host("a", *settings)
    assert host.end() == 0
