# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Shared by tests between hosts: TCP or TLS, and checks of the result of hosts_verify."""

import pytest

FLUSHED = 5  # IBV_WC_WR_FLUSH_ERR
RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR
SHORT_RETRIES = {"timeout": 14, "retries": 2, "may_fail": True}  # a QP gives up after 0.2 s


def _both(check, other):
    return pytest.mark.parametrize("pipe", [check, pytest.param(other, marks=pytest.mark.long)])


# Both kinds of connection: the first one in make check, the other one in make check-long.
TCP_IN_CHECK = _both("tcp", "tls")
TLS_IN_CHECK = _both("tls", "tcp")


def assert_right(result):
    """All data arrived once, in order and unchanged."""
    assert result["steps"] > 0 and result["wrong"] == 0 and not result["failed"], result


def assert_apart(result):
    """The guests never met."""
    assert result["steps"] == 0 and result["wrong"] == 0 and len(result["failed"]) == result["streams"], result


def statuses_at_guest_1(result):
    """First errors of the streams that begin at guest 1: those with even numbers."""
    assert result["wrong"] == 0, result
    return [failure["status"] for failure in result["failed"] if failure["stream"] % 2 == 0]
