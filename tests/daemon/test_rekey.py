# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Keys that are replaced, added and removed while daemons run: by 'pvrdmactl reload' and by SIGHUP."""

import functools
import json
import re
import signal
import ssl
import time
from pathlib import Path

import pytest

import pipe_peer as p
from daemon_load import Load
from daemon_net import address, host_of, options, peer_of, start_pair, wait_pair, wait_up
from daemon_process import run_pvrdmad, wait_until
from keys import WRONG_FILES, Authority, damage, new_psk, psk_dialler, tls_context, tls_peer, write_keys
from pipe_peer import Conn

STAYS = "; keys and hosts stay as they were"


@pytest.fixture(name="ca")
def fixture_ca(tmp_path):
    return Authority(tmp_path)


@pytest.fixture(name="start")
def fixture_start(start):
    return functools.partial(start, guest=True)


class Keys:
    """Pre-shared keys of hosts: lines of text, which a test changes."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, number, *lines):
        """Give host `number` keys: 'h2:KEY', ... Return: its options."""
        return write_keys(self.folder / f"h{number}.psk", *lines)

    def write_pair(self, *keys):
        """Give h1 and h2 common keys. Return: the options of both."""
        return [self.write(number, *(f"h{3 - number}:{key}" for key in keys)) for number in (1, 2)]


@pytest.fixture(name="keys")
def fixture_keys(tmp_path):
    return Keys(tmp_path)


def reload(daemon, status=0):
    done = daemon.ctl("reload")
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def made(daemon, name):
    """How many connections it has dialled so far."""
    return peer_of(daemon, name).get("connects", 0)


# ------------------------------------------------------------------------- without an interruption


def test_certificate_is_replaced_under_load(start, ca):
    one, two = start_pair(start, ca.options("h1"), ca.options("h2"))
    before = {daemon: made(daemon, name) for daemon, name in ((one, "h2"), (two, "h1"))}
    load = Load(one, two)
    shown = shown_serial(ca)
    for host, daemon in (("h1", one), ("h2", two)):
        ca.sign(host)
        assert "is disconnected" not in reload(daemon)
        load.wait_for_progress()
    load.end()
    assert before == {one: made(one, "h2"), two: made(two, "h1")}, "connections were made anew"
    assert shown_serial(ca) != shown, "the old certificate is still shown"


def shown_serial(ca):
    """Of the certificate of h1 on a new connection."""
    with tls_peer(ca, "stranger") as conn:
        return conn.sock.getpeercert()["serialNumber"]


def test_pre_shared_key_is_replaced_under_load(start, keys):
    """As in docs/multi-host.md: accept the new key everywhere, then use it everywhere, then remove the old one."""
    old, new = new_psk(), new_psk()
    one, two = start_pair(start, *keys.write_pair(old))
    load = Load(one, two)
    logs = len(one.log()), len(two.log())
    for lines in ([old, new], [new, old], [new]):
        for number, other, daemon in ((1, 2, one), (2, 1, two)):
            before = made(one, "h2")
            keys.write(number, *(f"h{other}:{line}" for line in lines))
            said = reload(daemon)
            assert ("is disconnected" in said) == (lines == [new] and number == 1), said
            assert len(lines) == 1 or made(one, "h2") == before
            wait_pair(one, two)
            load.wait_for_progress()
    load.end()
    assert "cannot connect" not in one.log()[logs[0]:] + two.log()[logs[1]:], "there was a moment without a key that fits"


def test_authority_is_replaced_under_load(start, ca, tmp_path):
    """Both authorities in one file, new certificates, then the old authority goes."""
    new = Authority(tmp_path, "new")
    trusted = [tmp_path / f"trusted{number}" for number in (1, 2)]
    keys = [ca.options(f"h{number}") for number in (1, 2)]
    for path, options_of_one in zip(trusted, keys):
        path.write_text(ca.cert.read_text())
        options_of_one[5] = str(path)
    one, two = daemons = start_pair(start, *keys)
    load = Load(one, two)
    for path, daemon in zip(trusted, daemons):
        path.write_text(ca.cert.read_text() + new.cert.read_text())
        assert f"{path}: 2 certificate authorities" in reload(daemon)
    for number, daemon in enumerate(daemons):
        for index, path in zip((1, 3), new.sign(f"h{number + 1}")):
            Path(keys[number][index]).write_bytes(path.read_bytes())
        assert "is disconnected" not in reload(daemon)
        load.wait_for_progress()
    for path, daemon in zip(trusted, daemons):
        path.write_text(new.cert.read_text())
        reload(daemon)
        load.wait_for_progress()
    # These connections were made with certificates of the old one.
    assert "host h2 is disconnected: the certificate of host 'h2' is not trusted any more: self-signed" in one.log()
    load.end()
    wait_pair(one, two)
    with pytest.raises((ssl.SSLError, p.Closed, OSError)):
        with tls_peer(new, None) as conn:
            conn.sock.context.load_cert_chain(*ca.sign("h9"))
            conn.greet("h9")
    with tls_peer(new, "h9") as conn:
        assert conn.greet("h9") == "h1"


def test_many_reloads_leave_nothing(start, keys):
    one, two = start_pair(start, *keys.write_pair(new_psk()))
    files, before = one.open_files(), made(one, "h2")
    for _ in range(100):
        assert reload(one) == f"read again: {keys.folder}/h1.psk: 1 pre-shared key\n"
    one.wait_for_files(files)
    assert made(one, "h2") == before
    assert peer_of(two, "h1")["conns_in"] == 2


# ------------------------------------------------------------------------ hosts that are cut off


def test_removed_host_is_cut_off(start, keys):
    good, bad = new_psk(), new_psk()
    three = start(3, args=keys.write(3, f"h1:{bad}"))
    one, two = start_pair(start, keys.write(1, f"h2:{good}", f"h3:{bad}"), keys.write(2, f"h1:{good}"))
    three.stop()
    three = start(3, 1, args=keys.write(3, f"h1:{bad}"))
    wait_until(lambda: peer_of(one, "h3")["conns_in"] == 2, "h3 is in")
    before = made(one, "h2")
    keys.write(1, f"h2:{good}")
    why = f"there is no key for host 'h3' in {keys.folder}/h1.psk any more"
    assert reload(one) == f"read again: {keys.folder}/h1.psk: 1 pre-shared key\nhost h3 is disconnected: {why}\n"
    assert f"host h3 is disconnected: {why}" in one.log()
    wait_until(lambda: peer_of(one, "h3")["conns_in"] == 0, "h3 is out")
    three.wait_for_log("the connection to host h1 has ended: closed by the peer: wrong identity: "
                       "a key or certificate is no longer valid")
    three.wait_for_log("cannot connect to host h1 at")
    one.wait_for_log(f"is refused: there is no key for host 'h3' in {keys.folder}/h1.psk")
    assert peer_of(one, "h3")["conns_in"] == 0
    assert peer_of(one, "h2")["state"] == "up" and made(one, "h2") == before
    # And in again.
    keys.write(1, f"h2:{good}", f"h3:{bad}")
    assert "is disconnected" not in reload(one)
    wait_until(lambda: peer_of(one, "h3")["conns_in"] == 2, "h3 is in")
    assert peer_of(two, "h1")["conns_in"] == 2


def test_both_directions_end(start, keys):
    """Connections in both directions end. A --peer without a key is still dialled, and the operator is warned."""
    one, two = start_pair(start, *keys.write_pair(new_psk()))
    keys.write(1, f"h3:{new_psk()}")
    said = reload(one).splitlines()
    none = f"there is no key for host 'h2' in {keys.folder}/h1.psk"
    assert said[1:] == [f"host h2 is disconnected: {none} any more", f"warning: {none}"]
    wait_until(lambda: (peer_of(one, "h2")["conns_out"], peer_of(one, "h2")["conns_in"]) == (0, 0), "all have ended")
    wait_until(lambda: peer_of(one, "h2")["error"] == none, "the reason is shown")
    assert peer_of(two, "h1")["conns_in"] == 0


def test_changed_key_takes_effect_at_once(start, keys):
    """The old key is refused. Traffic waits until both hosts have the new one, and goes on."""
    one, two = start_pair(start, *keys.write_pair(new_psk()))
    load = Load(one, two)
    keys.write_pair(new_psk())
    assert f"host h2 is disconnected: the key of host 'h2' is not in {keys.folder}/h1.psk any more" in reload(one)
    reload(two)
    wait_pair(one, two)
    load.end()


@pytest.mark.long
def test_expired_certificate_is_noticed(start, ca):
    lifetime = 10
    end = time.time() + lifetime + 1
    cert, key = ca.sign_for("h2", lifetime)
    two = start(2, args=["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca.cert])
    one = start(1, 2, args=ca.options("h1"))
    wait_up(one, "h2", incoming=0)
    assert "is disconnected" not in reload(one)
    time.sleep(max(0, end + 1 - time.time()))
    one.wait_for_log("the connection to host h2 has ended: its certificate has expired")
    one.wait_for_log(f"cannot connect to host h2 at {address(2)}:7471: the certificate of '/CN=h2' is refused: "
                     "certificate has expired")
    # Its own daemon does not take it a second time; with a new one it is back.
    assert re.search(rf"the certificate {cert} has expired at [0-9: -]+ UTC: sign a new one{STAYS}", reload(two, 1))
    ca.sign("h2")
    reload(two)
    wait_up(one, "h2", incoming=0)


def test_connection_ends_with_its_certificate(tls_host, ca):
    """Without a reload, soon after its time."""
    reason = text = end = None
    for lifetime in (3, 6, 9):
        end = time.time() + lifetime
        context = tls_context(ca, ca.sign_for("h2", lifetime))
        try:
            with Conn(context.wrap_socket(Conn.dial(address(1)).sock)) as conn:
                conn.greet("h2", keepalive=1000)
                conn.ping()
                # Between two of its checks.
                reason, text = conn.close_frame()
            break
        except (ssl.SSLError, p.Closed, OSError):
            # A slow machine: it expired before it was used.
            assert time.time() > end
    assert (reason, text) == (p.CLOSE_IDENTITY, "the certificate has expired") and time.time() > end
    tls_host.wait_for_log("host h2 is not connected any more: its certificate has expired")


def test_revoked_host_is_cut_off(start, ca):
    """By a list that is read again: its connections end, in both directions, and it is refused."""
    crl = ["--tls-crl", str(ca.revoke())]
    one, two = start_pair(start, ca.options("h1") + crl, ca.options("h2") + crl)
    assert f"{crl[1]}: 1 certificate revocation list\n" in reload(one)
    ca.revoke(ca.folder / "ca-h2.pem")
    assert "host h2 is disconnected: the certificate of host 'h2' is not trusted any more: certificate revoked" in reload(one)
    one.wait_for_log("is refused: the certificate of '/CN=h2' is refused: certificate revoked")
    one.wait_for_log(f"cannot connect to host h2 at {address(2)}:7471: the certificate of '/CN=h2' is refused: "
                     "certificate revoked")
    wait_until(lambda: (peer_of(one, "h2")["conns_out"], peer_of(one, "h2")["conns_in"]) == (0, 0), "all have ended")
    # A new certificate of the same host is accepted.
    ca.sign("h2")
    reload(two)
    wait_pair(one, two)


def test_wrong_revocation_list_changes_nothing(start, refuse, ca):
    crl = ca.revoke()
    one, _ = start_pair(start, files := ca.options("h1") + ["--tls-crl", str(crl)], ca.options("h2"))
    good = crl.read_bytes()
    for text, why in (("", f"cannot use the certificate revocation list {crl}: "), ("nonsense\n", f"cannot use .* {crl}: ")):
        crl.write_text(text)
        assert_reload_changes_nothing(one, why)
    crl.unlink()
    assert_reload_changes_nothing(one, f"cannot read the certificate revocation list {crl}: No such file")
    refuse(1, f"cannot read the certificate revocation list {crl}: No such file", *options(3, args=files))
    refuse(2, "tls-crl lists revoked certificates: it needs tls-cert", *options(3, args=["--tls-crl", str(crl)]))
    crl.write_bytes(good)
    assert "is disconnected" not in reload(one)


def test_list_that_would_refuse_all_is_not_taken(start, ca, tmp_path):
    """An outdated list, or none of an authority: all its hosts would be disconnected."""
    crl = ca.revoke()
    one, _ = start_pair(start, ca.options("h1") + ["--tls-crl", str(crl)], ca.options("h2"))
    good = crl.read_bytes()
    ca.revoke(seconds=1)
    time.sleep(2.1)
    outdated = crl.read_bytes()
    assert_reload_changes_nothing(one, f"the certificate revocation list {crl} of /CN=ca has expired at .* UTC: "
                                       "get a newer one")
    crl.write_bytes(Authority(tmp_path, "other").revoke().read_bytes())
    assert_reload_changes_nothing(one, f"the certificate revocation list {crl} has no list of an authority of this "
                                       "host's certificate: unable to get certificate CRL")
    # A newer list of the same authority makes an outdated one harmless.
    crl.write_bytes(outdated + good)
    assert "is disconnected" not in reload(one)


def test_list_of_another_authority_refuses_all(start, ca, tmp_path):
    """A missing list does not count as an empty one."""
    one = start(1, args=ca.options("h1") + ["--tls-crl", str(Authority(tmp_path, "other").revoke())])
    with pytest.raises((ssl.SSLError, p.Closed, OSError)):
        with tls_peer(ca, "h2") as conn:
            conn.greet("h2")
    one.wait_for_log("is refused: the certificate of '/CN=h2' is refused: unable to get certificate CRL")


def replace_authority(ca):
    """Hosts that trust `ca` trust another authority, once they read the file again."""
    ca.cert.write_bytes(Authority(ca.folder, "new").cert.read_bytes())


def test_certificate_that_others_refuse_is_warned_of(tls_host, ca, tmp_path):
    replace_authority(ca)
    said = reload(tls_host)
    assert (f"warning: hosts that have the same authorities as {ca.cert} will refuse the certificate "
            f"{tmp_path}/ca-h1.pem: unable to get local issuer certificate") in said


# --------------------------------------------------------- connections that are being made


def test_dialler_between_tls_and_hello(tls_host, ca):
    """Its certificate is trusted during the TLS handshake, and not any more when HELLO arrives."""
    with tls_peer(ca, "h2") as conn:
        conn.sock.setblocking(True)
        wait_until(lambda: host_of(tls_host)["handshakes"] == 1, "it is there")
        replace_authority(ca)
        reload(tls_host)
        conn.send(p.hello("h2"))
        kind, body = conn.frame()
    assert kind == p.CLOSE and body[0] == p.CLOSE_IDENTITY
    assert b"the certificate of host 'h2' is not trusted any more: self-signed certificate in" in body
    tls_host.wait_for_log("is refused: host h2: the certificate of host 'h2' is not trusted any more")
    assert peer_of(tls_host, "h2")["conns_in"] == 0


def test_dialled_host_that_answers_late(start, listener, ca):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*ca.sign("h2"))
    one = start(1, 2, args=ca.options("h1"))
    with Conn(context.wrap_socket(listener.accept().sock, server_side=True)) as conn:
        kind, body = conn.frame()
        assert kind == p.HELLO
        replace_authority(ca)
        reload(one)
        conn.send(p.hello("h2", index=body[24], dscp=body[25], count=body[26]))
        assert conn.close_frame()[0] == p.CLOSE_IDENTITY
    one.wait_for_log(f"cannot connect to host h2 at {address(2)}:7471: the certificate of host 'h2' is not trusted any more")
    assert peer_of(one, "h2")["conns_out"] == 0


def test_sessions_are_not_resumed(tls_host, ca):
    """No ticket lets a host resume a session without a key that is valid today."""
    with tls_peer(ca, "h2") as conn:
        assert conn.greet("h2") == "h1"
        conn.ping()  # by now a ticket would have come
        session = conn.sock.session
        assert not session.has_ticket
        context = conn.sock.context
    replace_authority(ca)
    reload(tls_host)
    with pytest.raises((ssl.SSLError, p.Closed, OSError)):
        with Conn(context.wrap_socket(Conn.dial(address(1)).sock, session=session)) as conn:
            assert not conn.sock.session_reused
            conn.greet("h2")
    tls_host.wait_for_log("is refused: the certificate of '/CN=h2' is refused")


# ------------------------------------------------------------------------- wrong files


def assert_reload_changes_nothing(one, pattern):
    before = made(one, "h2")
    said = reload(one, 1)
    assert re.match("pvrdmactl: " + pattern, said) and said.endswith(STAYS + "\n"), said
    assert said.removeprefix("pvrdmactl: ") in one.log()
    assert peer_of(one, "h2")["conns_out"] == 2 and made(one, "h2") == before


WRONG_KEYS = [
    (None, r"cannot read the key file .*/h1.psk: No such file"),
    ("", r".*/h1.psk: the file has no key"),
    ("# one\nh2:12\n", r".*/h1.psk:2: a key of 2 hexadecimal digits, expected 32 to 128: make one by"),
    ("h3:GOOD\nh2\n", r".*/h1.psk:2: a key of 2 hexadecimal digits"),
    ("h3:GOOD\nh!:GOOD\n", r".*/h1.psk:2: host name 'h!' has characters other than"),
]


@pytest.mark.parametrize("text, pattern", WRONG_KEYS, ids=range(len(WRONG_KEYS)))
def test_wrong_key_file_changes_nothing(start, keys, text, pattern):
    key, other = new_psk(), new_psk()
    one, _ = start_pair(start, keys.write(1, f"h2:{key}", f"h9:{other}"), keys.write(2, f"h1:{key}"))
    path = keys.folder / "h1.psk"
    path.unlink()
    if text is not None:
        path.write_text(text.replace("GOOD", new_psk()))
    assert_reload_changes_nothing(one, pattern)
    assert h9_is_answered(other), "a key from before does not do any more"


def h9_is_answered(key):
    """Whether h1 answers a HELLO of h9 with this pre-shared key."""
    with psk_dialler("h9", key, "h9") as replies:
        return replies.read(5)[4:] == bytes([p.HELLO])


@pytest.mark.parametrize("index, how, pattern", [
    *WRONG_FILES, (1, "expired", "the certificate FILE has expired at .* UTC: sign a new one"),
])
def test_wrong_certificates_change_nothing(start, ca, index, how, pattern):
    files = ca.options("h1")
    one, _ = start_pair(start, files, ca.options("h2"))
    cert, key = (Path(files[at]).read_bytes() for at in (1, 5))
    damage(Path(files[index]), how, ca)
    assert_reload_changes_nothing(one, pattern.replace("FILE", files[index]))
    # New connections get the certificate from before.
    ca.cert.write_bytes(key)
    with tls_peer(ca, "h8") as conn:
        assert conn.sock.getpeercert(True) == ssl.PEM_cert_to_DER_cert(cert.decode())
        assert conn.greet("h8") == "h1"


def test_missing_access_is_reported(ca, tmp_path):
    """Root without the right to read every file, as after a change of the user."""
    files = ca.options("h1")
    Path(files[3]).chmod(0)
    drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"]
    args = ["--control", tmp_path / "c", *options(1, args=files)]
    done = run_pvrdmad(*args, prefix=drop)
    if "setpriv: " in done.stderr:  # not root, so without the right anyway
        done = run_pvrdmad(*args)
    assert done.returncode == 1
    assert re.search(rf"cannot read the private key {files[3]}: Permission denied: pvrdmad runs as user \d+ of group \d+, "
                     "which must be able to", done.stderr), done.stderr


def test_hosts_and_keys_are_one(start, keys, tmp_path):
    """A mistake in either file, and neither is taken; a host and its key can come at once."""
    path = tmp_path / "peers"
    key, other = new_psk(), new_psk()

    def hosts(*numbers, tail=""):
        path.write_text("".join(f"[host h{number}]\naddress = {address(number)}\n" for number in numbers) + tail)

    hosts(2)
    one = start(1, args=["--peers", path, *keys.write(1, f"h2:{key}", f"h9:{other}")])
    hosts(2, 3)
    assert f"{path}:3: there is no key for host 'h3' in {keys.folder}/h1.psk" in reload(one, 1)
    assert peer_of(one, "h3")["state"] == "unknown"
    keys.write(1, f"h2:{key}", f"h3:{new_psk()}")
    hosts(2, 3, tail="[host h4]\naddress = here\n")
    assert f"{path}:6: 'here' is not an IP address" in reload(one, 1)
    assert h9_is_answered(other), "the new keys are in use in spite of the mistake"
    hosts(2, 3)
    said = f"read again: {path}: 2 hosts\nread again: {keys.folder}/h1.psk: 2 pre-shared keys\n"
    assert reload(one).startswith(said)
    assert peer_of(one, "h3")["address"] == f"{address(3)}:7471"
    assert not h9_is_answered(other)
    keys.write(1, f"h3:{new_psk()}")
    assert f"{path}:1: there is no key for host 'h2' in {keys.folder}/h1.psk" in reload(one, 1)


# ------------------------------------------------------------------------ output


def test_reply_as_text_and_json(start, ca):
    files = ca.options("h1")
    one = start(1, args=files)
    lines = reload(one).splitlines()
    assert re.match(rf"read again: {files[1]}: certificate of host h1, valid until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC$", lines[0])
    assert lines[1:] == [f"read again: {files[3]}: its private key", f"read again: {files[5]}: 1 certificate authority"]
    reply = one.query("reload")
    assert reply["ok"] and reply["disconnected"] == reply["warnings"] == []
    assert [row["file"] for row in reply["read"]] == [files[1], files[3], files[5]]
    Path(files[1]).unlink()
    done = one.ctl("--json", "reload")
    assert done.returncode == 1
    reply = json.loads(done.stdout)
    assert not reply["ok"] and reply["read"] == []
    assert reply["error"] == f"cannot read the certificate {files[1]}: No such file or directory{STAYS}"


def test_sighup_does_the_same(start, keys):
    one = start(1, args=keys.write(1, f"h2:{new_psk()}", f"h3:{new_psk()}"))
    keys.write(1, f"h2:{new_psk()}")
    one.child.send_signal(signal.SIGHUP)
    one.wait_for_log(f"read again: {keys.folder}/h1.psk: 1 pre-shared key\n")
    keys.write(1, "h2:nonsense")
    one.child.send_signal(signal.SIGHUP)
    one.wait_for_log(f"{keys.folder}/h1.psk:1: a key of 8 hexadecimal digits, expected 32 to 128")
    assert STAYS in one.log()


def test_nothing_to_read(daemon):
    assert reload(daemon) == "there is no file to read again: pvrdmad has neither keys nor a peers file\n"
    assert daemon.query("reload")["read"] == []
    daemon.child.send_signal(signal.SIGHUP)
    daemon.wait_for_log("there is no file to read again")
