# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Authentication of hosts: certificates and pre-shared keys, right ones and wrong ones."""

import re
import socket
import ssl
import subprocess

import pytest

import pipe_peer as p
from daemon_net import address, flood, host_of, options, peer_of, pings, start_pair, wait_up
from daemon_process import PATIENCE, refuse, run_pvrdmad, wait_until
from keys import Authority, new_psk, openssl, psk_options, tls_context, tls_peer, write_keys
from pipe_peer import Conn


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "other")


def control(tmp_path):
    return "--control", tmp_path / "c"


def refused_both_ways(start, keys1, keys2, *patterns):
    """h1 cannot connect to h2; each pattern is in the log of one of them."""
    two, one = start(2, args=keys2), start(1, 2, args=keys1)
    wait_until(lambda: host_of(two)["refused"] > 0, "h2 refuses")
    for pattern in ("cannot connect to host h2 at ", *patterns):
        wait_until(lambda: re.search(pattern, one.log() + two.log()), pattern)
    assert peer_of(one, "h2")["conns_out"] == 0 and peer_of(two, "h1")["conns_in"] == 0
    assert peer_of(one, "h2")["state"] == "unreachable"


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


def test_certificate_of_another_authority(start, ca, other_ca):
    refused_both_ways(start, other_ca.options("h1", ca=ca), ca.options("h2"),
                      r"a connection from .* is refused: the certificate of '/CN=h1' is refused: unable to get local",
                      "cannot connect to host h2 at .*: TLS: the peer refuses the connection: unknown CA")


def test_certificate_of_the_dialled_is_wrong(start, ca, other_ca):
    refused_both_ways(start, ca.options("h1"), other_ca.options("h2", ca=ca),
                      "cannot connect to host h2 at .*: the certificate of '/CN=h2' is refused: unable to get local")


def test_expired_certificate(start, ca):
    start(2, args=ca.options("h2", days=-1))
    one = start(1, 2, args=ca.options("h1"))
    one.wait_for_log(f"cannot connect to host h2 at {address(2)}:7471: the certificate of '/CN=h2' is refused: "
                     "certificate has expired")


def test_expired_certificate_of_the_dialler(start, ca):
    refused_both_ways(start, ca.options("h1", days=-1), ca.options("h2"),
                      "is refused: the certificate of '/CN=h1' is refused: certificate has expired",
                      "the peer refuses the connection: certificate expired")


def test_certificate_of_another_host(start, ca):
    """h3's certificate is good, but h2 is dialled."""
    cert, key = ca.sign("h3")
    keys = ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-ca", str(ca.cert)]
    one = start(1, 2, args=ca.options("h1"))
    refuse(1, "is not this host's: it lacks the subject alternative name DNS:h2", *options(2, args=keys))
    assert peer_of(one, "h2")["conns_out"] == 0


def test_saying_to_be_another_host(start, ca):
    """A valid certificate of h3, and a HELLO of h2."""
    one = start(1, args=ca.options("h1"))
    with tls_peer(ca, "h3") as conn:
        conn.send(p.hello("h2"))
        reason, text = conn.close_frame()
    assert reason == p.CLOSE_IDENTITY
    assert "it claims to be host 'h2', which its certificate does not name" in text
    one.wait_for_log("refused: host h2: it claims to be host 'h2', which its certificate does not name")
    with tls_peer(ca, "h3") as conn:
        assert conn.greet("h3") == "h1"


def test_wildcards_are_not_believed(start, ca):
    one = start(1, args=ca.options("h1"))
    with tls_peer(ca, "wild", names=["*.lab.example"]) as conn:
        conn.send(p.hello("h2.lab.example"))
        assert conn.close_frame()[0] == p.CLOSE_IDENTITY
    assert peer_of(one, "h2.lab.example")["conns_in"] == 0


def test_no_certificate(start, ca):
    one = start(1, args=ca.options("h1"))
    with pytest.raises((ssl.SSLError, p.Closed, OSError)):
        with tls_peer(ca, None) as conn:
            conn.greet("h2")
    one.wait_for_log("is refused: TLS: it has shown no certificate")


def test_older_tls(start, ca):
    one = start(1, args=ca.options("h1"))
    context = tls_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(Conn.dial(address(1)).sock)
    one.wait_for_log("is refused: TLS: it does not speak TLS 1.3")


def test_bytewise_over_tls(start, ca):
    one = start(1, args=ca.options("h1"))
    with tls_peer(ca, "h2") as conn:
        for byte in p.hello("h2") + p.frame(p.PING, b"01234567"):
            conn.send(bytes([byte]))
        assert conn.frame()[0] == p.HELLO
        assert conn.frame() == (p.PONG, b"01234567")
        conn.send(pings(range(20000)))
        for number in range(20000):
            assert conn.frame() == (p.PONG, b"%08d" % number)
    assert one.child.poll() is None


def test_answers_that_are_read_late(start, ca):
    start(1, args=ca.options("h1"))
    with tls_peer(ca, "late") as conn:
        conn.greet("late")
        flood(conn)


def test_garbage_in_tls(start, ca):
    """Records in clear after the handshake."""
    one = start(1, args=ca.options("h1"))
    conn = tls_peer(ca, "h2")
    assert conn.greet("h2") == "h1"
    with socket.socket(fileno=conn.sock.detach()) as sock:
        sock.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        one.wait_for_log("host h2 is not connected any more")
    with tls_peer(ca, "h2") as conn:
        assert conn.greet("h2") == "h1"


def test_slow_tls_handshake(start, ca):
    one = start(1, args=ca.options("h1"))
    before = one.open_files()
    with Conn.dial(address(1)) as conn:
        conn.send(b"\x16\x03\x01\x02\x00\x01\x00")
        assert conn.ends()
    one.wait_for_log("is refused: no TLS handshake within 5 s")
    wait_until(lambda: one.open_files() == before, "no descriptor is left")


# ---------------------------------------------------------------------- pre-shared keys


def test_pre_shared_keys(start, tmp_path):
    key, other = new_psk(), new_psk()
    one = start(1, 2, args=psk_options(tmp_path, "h1", h2=key, h3=other))
    two = start(2, 1, args=psk_options(tmp_path, "h2", h1=key))
    three = start(3, 1, args=psk_options(tmp_path, "h3", h1=other))
    wait_up(one, "h2")
    wait_up(two, "h1")
    wait_up(three, "h1", incoming=0)
    assert re.match(r"TLSv1.3, TLS_[A-Z0-9_]+, pre-shared key$", peer_of(one, "h2")["tls"])


def test_one_key_for_all(start, tmp_path):
    key = new_psk(64)
    one = start(1, 2, args=psk_options(tmp_path, "h1", all=key))
    start(2, args=psk_options(tmp_path, "h2", all=key))
    wait_up(one, "h2", incoming=0)


@pytest.mark.parametrize("lines1, lines2", [
    (["OLD"], ["OLD", "NEW"]), (["OLD", "NEW"], ["NEW", "OLD"]), (["NEW", "OLD"], ["OLD", "NEW"]),
    (["NEW"], ["NEW", "OLD"]),
])
@pytest.mark.parametrize("named", [True, False], ids=["named", "all"])
def test_two_keys_for_a_host(start, tmp_path, named, lines1, lines2):
    """While a key is replaced both hosts can dial, in each pair of states."""
    values = {"OLD": new_psk(), "NEW": new_psk(16)}
    keys = [write_keys(tmp_path / f"keys{other}", *(f"h{other}:" * named + values[line] for line in lines))
            for other, lines in ((2, lines1), (1, lines2))]
    start_pair(start, *keys)


def test_key_that_is_not_among_the_two(start, tmp_path):
    refused_both_ways(start, write_keys(tmp_path / "1", f"h2:{new_psk()}", f"h2:{new_psk()}"),
                      write_keys(tmp_path / "2", f"h1:{new_psk()}"),
                      f"is refused: host 'h1' has shown a key that is not in {tmp_path}/2")


def test_wrong_pre_shared_key(start, tmp_path):
    refused_both_ways(start, psk_options(tmp_path, "h1", h2=new_psk()), psk_options(tmp_path, "h2", h1=new_psk()),
                      "is refused: TLS: host h1: its pre-shared key is not the one that is here",
                      "cannot connect to host h2 at .*: TLS: the peer refuses the connection")


def test_host_without_a_key(start, tmp_path):
    key = new_psk()
    refused_both_ways(start, psk_options(tmp_path, "h1", h2=key), psk_options(tmp_path, "h2", h3=key),
                      "is refused: there is no key for host 'h1' in .*h2.psk")


def test_no_key_for_a_peer(tmp_path):
    done = run_pvrdmad(*control(tmp_path), *options(1, 2, args=psk_options(tmp_path, "h1", h3=new_psk())))
    assert done.returncode == 1
    assert "peer h2: there is no key for host 'h2' in" in done.stderr


def test_key_of_another_host_proves_no_name(start, tmp_path):
    """h3 has its own key to h1; with that it cannot be h2 (openssl s_client sends the identity h3)."""
    one = start(1, args=psk_options(tmp_path, "h1", h2=new_psk(), h3=(key := new_psk())))
    child = subprocess.Popen(["openssl", "s_client", "-connect", f"{address(1)}:7471", "-tls1_3", "-quiet", "-psk", key,
                              "-psk_identity", "h3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    child.stdin.write(p.hello("h2"))
    child.stdin.flush()
    one.wait_for_log("refused: host h2: it claims to be host 'h2', but has the key of 'h3'")
    child.kill()
    child.communicate(timeout=PATIENCE)
    assert peer_of(one, "h2")["conns_in"] == 0


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
    ("h2:12\n", 1, "a key of 2 hexadecimal digits, expected 32 to 128"),
    ("# x\n\nh2:" + "0" * 130 + "\n", 3, "a key of 130 hexadecimal digits"),
    ("h2:" + "xy" * 16 + "\n", 1, "characters other than hexadecimal digits"),
    ("a b:" + "0" * 32 + "\n", 1, "a key of 1 hexadecimal digits"),
    ("h!:" + "0" * 32 + "\n", 1, "host name 'h!' has characters"),
    ("h2:" + "0" * 32 + "\nh2:" + "0" * 32 + "\n", 2, "the same key for h2 a second time"),
    ("".join(f"h2:{digit * 32}\n" for digit in "012"), 3, "a third key for h2: there can be two"),
    ("".join(f"{digit * 32}\n" for digit in "012"), 3, "a third key for all hosts"),
])
def test_wrong_key_file(tmp_path, text, line, pattern):
    path = tmp_path / "keys"
    path.write_text(text)
    refuse(1, rf"{path}:{line}: .*{pattern}", *control(tmp_path), *options(1, args=["--tls-psk-file", path]))


def test_empty_key_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# nothing\n")
    refuse(1, "the file has no key", *control(tmp_path), *options(1, args=["--tls-psk-file", path]))


@pytest.mark.parametrize("which, pattern", [
    (0, "cannot read the certificate .*none: No such file"), (1, "cannot read the private key .*none: No such file"),
    (2, "cannot read the certificate authority .*none: No such file"),
])
def test_missing_files(tmp_path, ca, which, pattern):
    keys = ca.options("h1")
    keys[2 * which + 1] = str(tmp_path / "none")
    refuse(1, pattern, *control(tmp_path), *options(1, args=keys))


@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_key_of_another_certificate(tmp_path, ca, kind):
    keys = ca.options("h1")
    keys[3] = str(ca.sign("h2")[1])
    if kind == "RSA":
        openssl("genrsa", "-out", keys[3], 2048)
    refuse(1, f"the private key {keys[3]} does not belong to the certificate {keys[1]}", *control(tmp_path), *options(1, args=keys))


def test_key_with_a_passphrase(tmp_path, ca):
    """There is no prompt for it, not even on a terminal."""
    keys = ca.options("h1")
    locked = tmp_path / "locked.key"
    openssl("pkey", "-in", keys[3], "-out", locked, "-aes256", "-passout", "pass:secret")
    keys[3] = str(locked)
    refuse(1, f"cannot use the private key {locked}: it has a passphrase", *control(tmp_path), *options(1, args=keys))


# -------------------------------------------------------------------- with and without


def test_plain_to_tls(start, ca):
    refused_both_ways(start, [], ca.options("h2"), "is refused: TLS: it does not speak TLS; is it --insecure there?")


def test_tls_to_plain(start, ca):
    refused_both_ways(start, ca.options("h1"), [], "is refused: it begins with TLS, and here TLS is off")


def test_keys_to_certificates(start, ca, tmp_path):
    refused_both_ways(start, psk_options(tmp_path, "h1", h2=new_psk()), ca.options("h2"),
                      "the certificate of '/CN=h2' is refused")


def test_insecure_is_named(start_daemon, namespace):
    """Not loopback, and no keys: only --insecure allows it."""
    refuse(2, "insecure where all that can reach it are trusted", "--listen", "0.0.0.0:17471")
    daemon = start_daemon(adapters=0, args=["--name", "h1", "--listen", "0.0.0.0:17471", "--insecure"], prefix=namespace)
    assert "host h1 listens at 0.0.0.0:17471, TLS: off" in daemon.log()
