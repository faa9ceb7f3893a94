#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A bad network: joins network namespaces by a switch that loses, delays and re-orders frames.

Does what "tc qdisc ... netem" does, where the kernel has that not. Started with the process ids of the
namespaces' owners, in their user namespace; each gets a tap device eth0. Lines on standard input:

    NUMBER DELAY_MS LOSS REORDER    what the NUMBER-th of them sends comes so much later; what part of it
                                    is lost, and what part comes at once, before its time
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_QUEUE = 20000  # frames under way; the others are lost
_FRAME = 65536
_libc = ctypes.CDLL(None, use_errno=True)


def _tap(pid):
    """A tap device in the network namespace of a process."""
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if _libc.setns(space, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns to that of process {pid}")
    os.close(space)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", b"eth0", _IFF_TAP | _IFF_NO_PI))
    return tap


class Weather:
    """Frames between taps, and when they arrive."""

    def __init__(self, taps):
        self.taps = taps
        self.how = {tap: (0.0, 0.0, 0.0) for tap in taps}
        self.where = {}         # MAC: tap
        self.under_way = []     # (when, order, taps, frame)
        self.order = 0

    def set(self, number, delay, loss, reorder):
        self.how[self.taps[number - 1]] = (delay, loss, reorder)

    def take(self, tap):
        """All frames that a namespace has sent."""
        for _ in range(64):
            try:
                frame = os.read(tap, _FRAME)
            except OSError:
                return  # no more of them, or the device is down
            self._send(tap, frame)

    def _send(self, tap, frame):
        self.where[frame[6:12]] = tap
        delay, loss, reorder = self.how[tap]
        if random.random() < loss or len(self.under_way) >= _QUEUE:
            return
        one = None if frame[0] & 1 else self.where.get(frame[:6])
        targets = [one] if one else [other for other in self.taps if other != tap]
        if not delay or random.random() < reorder:
            self._arrive(targets, frame)
            return
        self.order += 1
        heapq.heappush(self.under_way, (time.monotonic() + delay, self.order, targets, frame))

    @staticmethod
    def _arrive(targets, frame):
        for tap in targets:
            try:
                os.write(tap, frame)
            except OSError:
                pass  # it is down, or full

    def deliver(self):
        """What is due; returns the seconds until more is, or None."""
        now = time.monotonic()
        while self.under_way and self.under_way[0][0] <= now:
            _, _, targets, frame = heapq.heappop(self.under_way)
            self._arrive(targets, frame)
        return max(0.0, self.under_way[0][0] - now) if self.under_way else None


def main(pids):
    taps = [_tap(pid) for pid in pids]
    weather = Weather(taps)
    print("up", flush=True)
    while True:
        ready, _, _ = select.select([sys.stdin, *taps], [], [], weather.deliver())
        for source in ready:
            if source is not sys.stdin:
                weather.take(source)
                continue
            line = sys.stdin.readline()
            if not line:
                return
            number, delay, loss, reorder = line.split()
            weather.set(int(number), float(delay) / 1000, float(loss), float(reorder))


if __name__ == "__main__":
    main(sys.argv[1:])
