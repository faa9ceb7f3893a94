#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A switch between network namespaces that delays, drops, reorders and marks frames, for kernels without tc's netem.

Arguments: the process IDs of the namespaces' owners. Runs in their user namespace and gives each a tap device eth0.
Lines on standard input:

    NUMBER DELAY_MS LOSS REORDER MARK    for frames that the NUMBER-th namespace sends: their delay, the part of
                                         them that is dropped, the part that is delivered without delay, and the
                                         part of those with ECN that gets the mark CE
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
_QUEUE = 20000  # frames in flight; more are dropped
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


def _mark(frame):
    """The frame with the mark CE, if its sender permits marks (RFC 3168)."""
    if frame[12:14] == b"\x86\xdd" and frame[15] >> 4 & 3:
        return frame[:15] + bytes([frame[15] | 0x30]) + frame[16:]
    if frame[12:14] == b"\x08\x00" and frame[15] & 3:
        header = bytearray(frame[14:34])
        header[1] |= 3
        header[10:12] = bytes(2)
        total = sum(struct.unpack("!10H", header))
        total = (total & 0xFFFF) + (total >> 16)
        header[10:12] = struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
        return frame[:14] + bytes(header) + frame[34:]
    return frame


class Netem:
    """The frames in flight between taps."""

    def __init__(self, taps):
        self.taps = taps
        self.rules = {tap: (0.0, 0.0, 0.0, 0.0) for tap in taps}  # delay in seconds, loss, reorder, mark
        self.tap_of = {}        # MAC: tap
        self.in_flight = []     # (when, order, taps, frame)
        self.order = 0

    def set(self, number, delay, loss, reorder, mark):
        self.rules[self.taps[number - 1]] = (delay, loss, reorder, mark)

    def take(self, tap):
        """Read the frames that a namespace has sent."""
        for _ in range(64):
            try:
                frame = os.read(tap, _FRAME)
            except OSError:
                return  # no more of them, or the device is down
            self._send(tap, frame)

    def _send(self, tap, frame):
        self.tap_of[frame[6:12]] = tap
        delay, loss, reorder, mark = self.rules[tap]
        if random.random() < loss or len(self.in_flight) >= _QUEUE:
            return
        if random.random() < mark:
            frame = _mark(frame)
        one = None if frame[0] & 1 else self.tap_of.get(frame[:6])
        targets = [one] if one else [other for other in self.taps if other != tap]
        if not delay or random.random() < reorder:
            self._arrive(targets, frame)
            return
        self.order += 1
        heapq.heappush(self.in_flight, (time.monotonic() + delay, self.order, targets, frame))

    @staticmethod
    def _arrive(targets, frame):
        for tap in targets:
            try:
                os.write(tap, frame)
            except OSError:
                pass  # the device is down, or its queue is full

    def deliver(self):
        """Deliver the frames that are due. Return: the seconds until the next one is, or None."""
        now = time.monotonic()
        while self.in_flight and self.in_flight[0][0] <= now:
            _, _, targets, frame = heapq.heappop(self.in_flight)
            self._arrive(targets, frame)
        return max(0.0, self.in_flight[0][0] - now) if self.in_flight else None


def main(pids):
    taps = [_tap(pid) for pid in pids]
    netem = Netem(taps)
    rest = ""
    print("up", flush=True)
    while True:
        ready, _, _ = select.select([sys.stdin, *taps], [], [], netem.deliver())
        for source in ready:
            if source is not sys.stdin:
                netem.take(source)
                continue
            # Not by readline(): select() does not see lines that are in its buffer.
            text = os.read(sys.stdin.fileno(), 4096).decode()
            if not text:
                return
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                number, delay, *parts = line.split()
                netem.set(int(number), float(delay) / 1000, *map(float, parts))


if __name__ == "__main__":
    main(sys.argv[1:])
