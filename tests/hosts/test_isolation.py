# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fabrics are apart across hosts too, and hosts without the right key get nothing."""

import secrets

from hosts_checks import SHORT_RETRIES, assert_apart


def test_fabrics_are_apart(start_lab):
    assert_apart(start_lab(fabrics={1: "blue", 2: "red"}).begin_verify(**SHORT_RETRIES).result())


def test_wrong_key_gets_nothing(start_lab):
    lab = start_lab(pipe="tls", start=False)
    other = lab.folder / "other"
    other.write_text(f"{secrets.token_hex(32)}\n")
    other.chmod(0o600)
    daemon = lab.daemons[2]
    daemon.args = [other if arg == lab.key else arg for arg in daemon.args]
    lab.start()
    assert_apart(lab.begin_verify(**SHORT_RETRIES).result())
    assert "host2" in lab.daemons[1].log() and "host1" in daemon.log()


def test_plain_and_tls_do_not_meet(start_lab):
    lab = start_lab(pipe="tls", start=False)
    daemon = lab.daemons[2]
    where = daemon.args.index("--tls-psk-file")
    daemon.args[where:where + 2] = ["--insecure"]
    lab.start()
    assert_apart(lab.begin_verify(**SHORT_RETRIES).result())
