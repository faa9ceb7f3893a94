# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Who is connected to a guest of another host that is gone for good hears of it at once."""

import time

FLUSHED = 5  # IBV_WC_WR_FLUSH_ERR
RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR


def test_adapter_that_is_removed(start_lab, pipe):
    """Queue pairs with a timeout of 4 s and 7 retries would wait for two minutes."""
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(seconds=4, may_fail=True)
    run.wait_begun()
    lab.daemons[2].ctl("remove-adapter", "vm2")
    begin = time.monotonic()
    result = run.result(60)
    assert time.monotonic() - begin < 20
    assert result["wrong"] == 0, result
    # Streams with even numbers begin at guest 1; the others' own device is gone. With no request under way at that
    # moment, the next one is flushed.
    left = [failure["status"] for failure in result["failed"] if failure["stream"] % 2 == 0]
    assert len(left) == result["streams"] // 2 and set(left) <= {RETRY_EXCEEDED, FLUSHED}, result
