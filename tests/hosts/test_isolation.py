# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fabrics are apart across hosts too, and hosts without the right key get nothing."""

import pytest

from hosts_checks import SHORT_RETRIES, assert_apart, assert_right


def test_fabrics_are_apart(start_lab):
    assert_apart(start_lab(fabrics={1: "blue", 2: "red"}).begin_verify(**SHORT_RETRIES).result())


@pytest.mark.parametrize("other", ["other key", "tcp"])
def test_hosts_without_a_common_key_are_apart(start_lab, other):
    lab = start_lab(pipe=("tls", other))
    with lab.neighbours():
        assert_apart(lab.begin_verify(**SHORT_RETRIES).result())
    assert "host2" in lab.daemons[1].log() and "host1" in lab.daemons[2].log()


def test_hostile_guests_disturb_no_others(start_lab):
    """Random commands, requests and doorbells of two guests, beside data of two others on the same worker."""
    lab = start_lab(guests_per_host=2)
    run = lab.begin_verify(1, 2)
    run.wait_begun()
    with lab.neighbours():
        hostile = lab.begin("hosts_monkey", 3, 4, "--seconds", 2).result()
    assert hostile["steps"] > 0
    assert_right(run.end())
