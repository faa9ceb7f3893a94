# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Data between guests of different hosts arrive whole, in order and once."""

LOCAL_ACK_ERROR = 12  # IBV_WC_RETRY_EXC_ERR


def is_right(result):
    return result["steps"] > 0 and result["wrong"] == 0 and not result["failed"]


def test_data_are_right(start_lab, pipe):
    result = start_lab(pipe=pipe).verify(seconds=3)
    assert is_right(result), result


def test_data_are_right_with_many_connections(start_lab, pipe):
    result = start_lab(pipe=pipe).verify(seconds=3, streams=64, max_write=16384)
    assert is_right(result), result


def test_large_messages_are_right(start_lab):
    result = start_lab().verify(seconds=3, streams=2, max_write=1 << 20)
    assert is_right(result), result


def test_gids_of_ipv4_addresses_are_found(start_lab):
    result = start_lab().verify(seconds=1, ipv4=True)
    assert is_right(result), result


def test_three_hosts_at_once(start_lab, pipe):
    lab = start_lab(hosts=3, pipe=pipe)
    runs = [lab.begin_verify(1, 2, seconds=4), ]
    runs[0].wait_begun()
    result = runs[0].result()
    assert is_right(result), result
    for one, other in ((2, 3), (3, 1)):
        result = lab.verify(one, other, seconds=2)
        assert is_right(result), result


def test_two_pairs_share_the_connections(start_lab, pipe):
    lab = start_lab(pipe=pipe, guests_per_host=2)
    runs = [lab.begin_verify(1, 2, seconds=4), lab.begin_verify(3, 4, seconds=4)]
    for run in runs:
        result = run.result()
        assert is_right(result), result


def test_guests_in_two_processes(start_lab):
    """As where hosts are machines: each process sees what arrives at its own guest."""
    lab = start_lab()
    second = lab.begin_alone("hosts_verify", 2, "--serve", 7998, "--seconds", 3)
    first = lab.begin_alone("hosts_verify", 1, "--join", "127.0.0.1:7998", "--seconds", 3)
    for result in (first.result(), second.result()):
        assert is_right(result) and result["steps"] > 10, result


def test_until_there_is_a_file(start_lab, tmp_path):
    lab = start_lab()
    run = lab.begin_verify(seconds=60, until=tmp_path / "over")
    run.wait_begun()
    (tmp_path / "over").touch()
    result = run.result(30)
    assert is_right(result) and result["seconds"] < 30, result


def test_one_of_two_processes_is_killed(start_lab):
    lab = start_lab()
    second = lab.begin_alone("hosts_verify", 2, "--serve", 7998, "--seconds", 30)
    first = lab.begin_alone("hosts_verify", 1, "--join", "127.0.0.1:7998", "--seconds", 30)
    first.wait_begun()
    second.child.kill()
    second.child.wait()
    assert first.child.wait(30) not in (0, 2) and "the other process" in first.error()


def test_several_workers(start_lab):
    result = start_lab(args=["--workers", "2"]).verify(seconds=3, streams=16)
    assert is_right(result), result


def test_an_absent_peer_fails_in_bounded_time(start_lab):
    lab = start_lab()
    run = lab.begin_verify(1, 2, seconds=30, timeout=14, retries=2, may_fail=True)
    run.wait_begun()
    lab.daemons[2].kill()
    result = run.result(60)
    assert result["wrong"] == 0, result
    statuses = {failure["status"] for failure in result["failed"] if failure["stream"] % 2 == 0}
    assert statuses == {LOCAL_ACK_ERROR}, result
