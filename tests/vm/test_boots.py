# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""How tests/pylib/boots.py shares the machine among boots of VMs."""

import concurrent.futures
import threading

from boots import Room


def run(room, *nodes):
    """Boots of so many VMs at the same time. Return: the largest number of VMs that ran at once, and of boots that have run."""
    lock, now, seen = threading.Lock(), [], []

    def boot(vms):
        with room.entered(vms):
            with lock:
                now.append(vms)
                seen.append(sum(now))
            threading.Event().wait(0.01)
            with lock:
                now.remove(vms)

    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        for done in [pool.submit(boot, vms) for vms in nodes]:
            done.result(10)
    return max(seen), len(seen)


def test_boots_share_the_room():
    most, runs = run(Room(4), 2, 2, 1, 1, 3, 2)
    assert 2 <= most <= 4 and runs == 6


def test_boot_that_is_larger_has_the_room_alone():
    assert run(Room(4), 5) == (5, 1)
    assert run(Room(4), 5, 2)[0] in (5, 2)


def test_boot_that_fails_leaves_the_room():
    room = Room(1)
    try:
        with room.entered(1):
            raise OSError
    except OSError:
        pass
    assert run(room, 1) == (1, 1)
