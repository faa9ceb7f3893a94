# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tenants are apart across hosts too, and hosts that cannot prove who they are get nothing."""

import secrets


def fails_alone(result):
    return result["steps"] == 0 and result["wrong"] == 0 and len(result["failed"]) == result["streams"]


def test_fabrics_are_apart(start_lab):
    lab = start_lab(fabrics={1: "blue", 2: "red"})
    result = lab.verify(seconds=5, timeout=12, retries=1, may_fail=True)
    assert fails_alone(result), result


def test_same_fabric_on_both_hosts_meets(start_lab):
    result = start_lab(fabrics={1: "blue", 2: "blue"}).verify(seconds=1)
    assert result["steps"] > 0 and not result["failed"] and not result["wrong"], result


def test_wrong_key_gets_nothing(start_lab):
    lab = start_lab(pipe="tls", start=False)
    other = lab.folder / "other"
    other.write_text(f"{secrets.token_hex(32)}\n")
    other.chmod(0o600)
    daemon = lab.daemons[2]
    daemon.args = [other if arg == lab.key else arg for arg in daemon.args]
    lab.start()
    result = lab.verify(seconds=5, timeout=12, retries=1, may_fail=True)
    assert fails_alone(result), result
    assert "host2" in lab.daemons[1].log() and "host1" in daemon.log()


def test_plain_and_tls_do_not_meet(start_lab):
    lab = start_lab(pipe="tls", start=False)
    daemon = lab.daemons[2]
    where = daemon.args.index("--tls-psk-file")
    daemon.args[where:where + 2] = ["--insecure"]
    lab.start()
    result = lab.verify(seconds=5, timeout=12, retries=1, may_fail=True)
    assert fails_alone(result), result
