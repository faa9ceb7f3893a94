# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A queue pair whose peer's adapter is removed for good fails at once, not after its retries."""

from hosts_checks import FLUSHED, RETRY_EXCEEDED, TLS_IN_CHECK, statuses_at_guest_1


@TLS_IN_CHECK
def test_adapter_that_is_removed(start_lab, pipe):
    """A timeout of 17 s and 7 retries would take above two minutes, and twice that at most."""
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(may_fail=True, timeout=22)
    run.wait_begun()
    lab.daemons[2].must("remove-adapter", "vm2")
    result = run.result(60)
    # With no request under way at that moment, the next one is flushed.
    found = statuses_at_guest_1(result)
    assert len(found) == result["streams"] // 2 and set(found) <= {RETRY_EXCEEDED, FLUSHED}, result
