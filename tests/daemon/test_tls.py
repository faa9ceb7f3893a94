# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Authentication of hosts: certificates and pre-shared keys, right ones and wrong ones."""

import re
import socket
import ssl
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import pipe_peer as p
from daemon_net import address, flood, host_of, options, peer_of, start_pair, wait_pair, wait_up
from daemon_process import PATIENCE, wait_until
from keys import (WRONG_FILES, Authority, damage, new_psk, psk_dialler, psk_options, tls_context, tls_peer,
                  write_keys)
from pipe_peer import Conn


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "other")


# -------------------------------------------------------------------------- certificates


def test_certificates(start, ca):
    one, _ = start_pair(start, ca.options("h1"), ca.options("h2"))
    assert re.match(r"TLSv1.3, TLS_[A-Z0-9_]+, certificate$", peer_of(one, "h2")["tls"])
    assert host_of(one)["tls"] == "certificates"
    assert 0 < peer_of(one, "h2")["rtt_us"] < 5e6


def test_certificate_for_several_names(start, ca):
    one = start(1, 2, args=ca.options("h1"))
    start(2, args=ca.options("h2", names=["else", "h2"]))
    wait_up(one, "h2", incoming=0)


def test_certificate_of_another_host(start, refuse, ca):
    """h3's certificate is good, but h2 is dialled."""
    cert, key = ca.sign("h3")
    keys = ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-ca", str(ca.cert)]
    one = start(1, 2, args=ca.options("h1"))
    refuse(1, "is not this host's: it lacks the subject alternative name DNS:h2", *options(2, args=keys))
    assert peer_of(one, "h2")["conns_out"] == 0


def test_claim_to_be_another_host(tls_host, ca):
    """A valid certificate of h3, and a HELLO of h2."""
    with tls_peer(ca, "h3") as conn:
        conn.send(p.hello("h2"))
        reason, text = conn.close_frame()
    assert reason == p.CLOSE_IDENTITY
    assert "it claims to be host 'h2', which its certificate does not name" in text
    tls_host.wait_for_log("refused: host h2: it claims to be host 'h2', which its certificate does not name")
    with tls_peer(ca, "h3") as conn:
        assert conn.greet("h3") == "h1"


def test_wildcards_are_refused(tls_host, ca):
    with tls_peer(ca, "wild", names=["*.lab.example"]) as conn:
        conn.send(p.hello("h2.lab.example"))
        assert conn.close_frame()[0] == p.CLOSE_IDENTITY
    assert peer_of(tls_host, "h2.lab.example")["conns_in"] == 0


def test_names_in_another_spelling_are_refused(tls_host, ca):
    """A certificate proves the exact name: each spelling would be a host of its own here."""
    for name in ("HOST2.example.com", "HOST2.EXAMPLE.COM", ".example.com", "host2.example.com.", "example.com"):
        with tls_peer(ca, "spelt", names=["host2.example.com"]) as conn:
            conn.send(p.hello(name))
            reason, text = conn.close_frame()
        assert reason == p.CLOSE_IDENTITY, name
        assert f"it claims to be host '{name}', which its certificate does not name" in text
        assert peer_of(tls_host, name)["state"] == "unknown"


def test_own_name_in_another_spelling_is_refused(refuse, ca):
    keys = ca.options("h1", names=["H1", "other"])
    refuse(1, "is not this host's: it lacks the subject alternative name DNS:h1", *options(1, args=keys))


def test_no_certificate(tls_host, ca):
    with pytest.raises((ssl.SSLError, p.Closed, OSError)):
        with tls_peer(ca, None) as conn:
            conn.greet("h2")
    tls_host.wait_for_log("is refused: TLS: it has shown no certificate")


def test_older_tls(tls_host):
    context = tls_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(Conn.dial(address(1)).sock)
    tls_host.wait_for_log("is refused: TLS: it does not speak TLS 1.3")


def test_bytewise_over_tls(tls_host, ca):
    with tls_peer(ca, "h2") as conn:
        for byte in p.hello("h2") + p.frame(p.PING, b"01234567"):
            conn.send(bytes([byte]))
        assert conn.frame()[0] == p.HELLO
        assert conn.frame() == (p.PONG, b"01234567")
        flood(conn)
    assert tls_host.child.poll() is None


def test_garbage_in_tls(tls_host, ca):
    """Records in clear after the handshake."""
    conn = tls_peer(ca, "h2")
    assert conn.greet("h2") == "h1"
    with socket.socket(fileno=conn.sock.detach()) as sock:
        sock.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        tls_host.wait_for_log("host h2 is not connected any more")
    with tls_peer(ca, "h2") as conn:
        assert conn.greet("h2") == "h1"


def test_handshakes_of_an_address_have_a_rate(tls_host, ca):
    """Of 64 per second and 256 at once. No test is slow enough to keep to that."""
    for _ in range(100):
        for _ in range(50):
            Conn.dial(address(1)).close()
        if "is refused: more than 256 TLS handshakes of that address" in tls_host.log():
            break
    else:
        pytest.fail("no connection is refused")
    # Another address.
    context = tls_context(ca, ca.sign("h2"))
    with Conn(context.wrap_socket(Conn.dial(address(1), source=address(2)).sock)) as conn:
        assert conn.greet("h2") == "h1"


def test_slow_tls_handshake(tls_host):
    before = tls_host.open_files()
    with Conn.dial(address(1)) as conn:
        conn.send(b"\x16\x03\x01\x02\x00\x01\x00")
        assert conn.ends()
    tls_host.wait_for_log("is refused: no TLS handshake within 5 s")
    tls_host.wait_for_files(before)


# ---------------------------------------------------------------------- pre-shared keys


def test_pre_shared_keys(start, tmp_path):
    key, other = new_psk(), new_psk()
    one = start(1, 2, args=psk_options(tmp_path, "h1", h2=key, h3=other))
    two = start(2, 1, args=psk_options(tmp_path, "h2", h1=key))
    three = start(3, 1, args=psk_options(tmp_path, "h3", h1=other))
    wait_pair(one, two)
    wait_up(three, "h1", incoming=0)
    assert re.match(r"TLSv1.3, TLS_[A-Z0-9_]+, pre-shared key$", peer_of(one, "h2")["tls"])


@pytest.mark.parametrize("lines1, lines2", [
    (["OLD"], ["OLD", "NEW"]), (["OLD", "NEW"], ["NEW", "OLD"]), (["NEW", "OLD"], ["OLD", "NEW"]),
    (["NEW"], ["NEW", "OLD"]),
])
@pytest.mark.parametrize("named", [True, False], ids=["named", "all"])
def test_two_keys_for_a_host(start, tmp_path, named, lines1, lines2):
    """While a key is replaced both hosts can dial, in each pair of states."""
    values = {"OLD": new_psk(64), "NEW": new_psk(16)}
    keys = [write_keys(tmp_path / f"keys{other}", *(f"h{other}:" * named + values[line] for line in lines))
            for other, lines in ((2, lines1), (1, lines2))]
    start_pair(start, *keys)


def test_no_key_for_a_peer(refuse, tmp_path):
    refuse(1, "peer h2: there is no key for host 'h2' in",
           *options(1, 2, args=psk_options(tmp_path, "h1", h3=new_psk())), lines=2)


def test_key_of_another_host_proves_no_name(start, tmp_path):
    """h3 has its own key to h1; with that it cannot be h2 (openssl s_client sends the identity h3)."""
    one = start(1, args=psk_options(tmp_path, "h1", h2=new_psk(), h3=(key := new_psk())))
    with psk_dialler("h3", key, "h2"):
        one.wait_for_log("refused: host h2: it claims to be host 'h2', but has the key of 'h3'")
    assert peer_of(one, "h2")["conns_in"] == 0


def client_hello(identities):
    """A ClientHello of TLS 1.3 that presents these identities of pre-shared keys, in records."""

    def vector(size, data):
        return len(data).to_bytes(size, "big") + data

    def extension(number, data):
        return number.to_bytes(2, "big") + vector(2, data)

    listed = b"".join(vector(2, identity) + bytes(4) for identity in identities)
    binders = b"".join(vector(1, bytes(32)) for _ in identities)
    extensions = (extension(43, b"\x02\x03\x04")  # supported_versions: TLS 1.3
                  + extension(10, vector(2, b"\x00\x1d"))  # supported_groups: x25519
                  + extension(13, vector(2, b"\x04\x03"))  # signature_algorithms
                  + extension(51, vector(2, b"\x00\x1d" + vector(2, b"\x09" + bytes(31))))  # key_share
                  + extension(45, b"\x01\x01")  # psk_key_exchange_modes: with DHE
                  + extension(41, vector(2, listed) + vector(2, binders)))
    body = b"\x03\x03" + bytes(32) + vector(1, b"") + vector(2, b"\x13\x01") + b"\x01\x00" + vector(2, extensions)
    message = b"\x01" + vector(3, body)
    return b"".join(b"\x16\x03\x01" + vector(2, message[at:at + 16384]) for at in range(0, len(message), 16384))


@pytest.mark.parametrize("num, why", [
    (8, "there is no key for host 'h7' in"), (1500, "it has shown more than 8 pre-shared keys"),
])
def test_identities_are_bounded(start, tmp_path, num, why):
    one = start(1, args=psk_options(tmp_path, "h1", else_=new_psk()))
    with Conn.dial(address(1)) as conn:
        conn.send(client_hello([f"h{number}".encode() for number in range(num)]))
        one.wait_for_log(f"is refused: {why}")
        assert conn.ends()


def test_certificate_instead_of_the_key(start, tmp_path, ca):
    """A server with a certificate instead of the key is refused."""
    one = start(1, 2, args=psk_options(tmp_path, "h1", h2=new_psk()))
    cert, key = ca.sign("h2")
    child = subprocess.Popen(["openssl", "s_server", "-accept", f"{address(2)}:7471", "-tls1_3", "-cert", str(cert),
                              "-key", str(key)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    one.wait_for_log("cannot connect to host h2 at")
    wait_until(lambda: "the certificate of '/CN=h2' is refused" in one.log(), "the certificate is refused")
    assert peer_of(one, "h2")["conns_out"] == 0
    child.kill()
    child.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("text, line, pattern", [
    ("# nothing\n", None, "the file has no key"),
    ("h2:12\n", 1, "a key of 2 hexadecimal digits, expected 32 to 128"),
    ("# x\n\nh2:" + "0" * 130 + "\n", 3, "a key of 130 hexadecimal digits"),
    ("h2:" + "xy" * 16 + "\n", 1, "characters other than hexadecimal digits"),
    ("a b:" + "0" * 32 + "\n", 1, "a key of 1 hexadecimal digits"),
    ("h!:" + "0" * 32 + "\n", 1, "host name 'h!' has characters"),
    ("h2:" + "0" * 32 + "\nh2:" + "0" * 32 + "\n", 2, "the same key for h2 a second time"),
    ("".join(f"h2:{digit * 32}\n" for digit in "012"), 3, "a third key for h2: there can be two"),
    ("".join(f"{digit * 32}\n" for digit in "012"), 3, "a third key for all hosts"),
])
def test_wrong_key_file(refuse, tmp_path, text, line, pattern):
    path = tmp_path / "keys"
    path.write_text(text)
    refuse(1, f"{path}{f':{line}' if line else ''}: .*{pattern}", *options(1, args=["--tls-psk-file", path]))


@pytest.mark.parametrize("index, how, pattern", WRONG_FILES)
def test_wrong_certificate_file(refuse, tmp_path, index, how, pattern):
    """No prompt asks for a passphrase, not even on a terminal."""
    ca = Authority(tmp_path)
    keys = ca.options("h1")
    damage(Path(keys[index]), how, ca)
    refuse(1, pattern.replace("FILE", keys[index]), *options(1, args=keys))


# -------------------------------------------------------------------- with and without


# Options of h1 and h2 by the test's Authorities and folder; what one of them logs.
NO_COMMON_KEYS = {
    "dialler of another authority": (
        lambda t: t.other.options("h1", ca=t.ca), lambda t: t.ca.options("h2"),
        [r"a connection from .* is refused: the certificate of '/CN=h1' is refused: unable to get local",
         "cannot connect to host h2 at .*: TLS: the peer refuses the connection: unknown CA"]),
    "dialled of another authority": (
        lambda t: t.ca.options("h1"), lambda t: t.other.options("h2", ca=t.ca),
        ["cannot connect to host h2 at .*: the certificate of '/CN=h2' is refused: unable to get local"]),
    "dialler has expired": (
        lambda t: t.ca.options("h1", days=-1), lambda t: t.ca.options("h2"),
        ["is refused: the certificate of '/CN=h1' is refused: certificate has expired",
         "the peer refuses the connection: certificate expired"]),
    "dialled has expired": (
        lambda t: t.ca.options("h1"), lambda t: t.ca.options("h2", days=-1),
        ["cannot connect to host h2 at .*:7471: the certificate of '/CN=h2' is refused: certificate has expired"]),
    "key that is not among the two": (
        lambda t: write_keys(t.folder / "1", f"h2:{new_psk()}", f"h2:{new_psk()}"),
        lambda t: write_keys(t.folder / "2", f"h1:{new_psk()}"),
        ["is refused: host 'h1' has shown a key that is not in .*/2"]),
    "wrong pre-shared key": (
        lambda t: psk_options(t.folder, "h1", h2=new_psk()), lambda t: psk_options(t.folder, "h2", h1=new_psk()),
        ["is refused: TLS: host h1: its pre-shared key is not the one that is here",
         "cannot connect to host h2 at .*: TLS: the peer refuses the connection"]),
    "no key for the dialler": (
        lambda t: psk_options(t.folder, "h1", h2=t.key), lambda t: psk_options(t.folder, "h2", h3=t.key),
        ["is refused: there is no key for host 'h1' in .*h2.psk"]),
    "plain to TLS": (
        lambda t: [], lambda t: t.ca.options("h2"), ["is refused: TLS: it does not speak TLS; is it --insecure there?"]),
    "TLS to plain": (
        lambda t: t.ca.options("h1"), lambda t: [], ["is refused: it begins with TLS, and here TLS is off"]),
    "key to certificate": (
        lambda t: psk_options(t.folder, "h1", h2=new_psk()), lambda t: t.ca.options("h2"),
        ["the certificate of '/CN=h2' is refused"]),
}


@pytest.mark.parametrize("keys1, keys2, patterns", NO_COMMON_KEYS.values(), ids=NO_COMMON_KEYS)
def test_no_connection_without_common_keys(start, ca, other_ca, tmp_path, keys1, keys2, patterns):
    test = SimpleNamespace(ca=ca, other=other_ca, folder=tmp_path, key=new_psk())
    two, one = start(2, args=keys2(test)), start(1, 2, args=keys1(test))
    wait_until(lambda: host_of(two)["refused"] > 0, "h2 refuses")
    for pattern in ("cannot connect to host h2 at ", *patterns):
        wait_until(lambda: re.search(pattern, one.log() + two.log()), pattern)
    assert peer_of(one, "h2")["conns_out"] == 0 and peer_of(two, "h1")["conns_in"] == 0
    assert peer_of(one, "h2")["state"] == "unreachable"


def test_insecure_is_named(start_daemon, refuse, namespace):
    """Not loopback, and no keys: only --insecure allows it."""
    refuse(2, "insecure where all that can reach it are trusted", "--listen", "0.0.0.0:17471")
    daemon = start_daemon(adapters=0, args=["--name", "h1", "--listen", "0.0.0.0:17471", "--insecure"], prefix=namespace)
    assert "host h1 listens at 0.0.0.0:17471, TLS: off" in daemon.log()
