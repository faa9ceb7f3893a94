# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The rows between two VMs: their devices and programs."""

import dataclasses

PVRDMA, RXE, TCP = "pvrdma", "rxe", "tcp"
PEER_NAMES = {PVRDMA: "pvrdma", RXE: "Soft-RoCE", TCP: "TCP"}
SIZES = (8, 64, 512, 4096, 16384, 65536, 262144, 1048576)
QPS = (1, 2, 4, 8, 16)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to measure. unit: the value's. better: "more" or "less". program, options: of verbs devices. tcp: qperf's test,
    and how often its result happens in one of ours. messages: per iteration. by_bytes: CPU time is per GB moved, else per
    message."""

    program: str
    unit: str
    options: str = ""
    tcp: str | None = None
    tcp_factor: int = 1
    messages: int = 1
    by_bytes: bool = False


KINDS = {
    "write_bw": Kind("ib_write_bw", "B/s", tcp="tcp_bw", by_bytes=True),
    "read_bw": Kind("ib_read_bw", "B/s", by_bytes=True),
    "send_bw": Kind("ib_send_bw", "B/s", by_bytes=True),
    "write_rate": Kind("ib_write_bw", "1/s", tcp="tcp_bw"),
    "send_rate": Kind("ib_send_bw", "1/s"),
    "write_rate_qps": Kind("ib_write_bw", "1/s"),
    "write_lat": Kind("ib_write_lat", "s", tcp="tcp_lat", messages=2),
    "send_lat": Kind("ib_send_lat", "s", messages=2),
    "pingpong": Kind("ibv_rc_pingpong", "s", tcp="tcp_lat", tcp_factor=2, messages=2),
    "pingpong_event": Kind("ibv_rc_pingpong", "s", options="-e", messages=2),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """vm.KIND.SIZE, or vm.write_rate_qps.QPS with messages of 8 bytes."""

    kind_name: str
    number: int

    @property
    def name(self):
        return f"vm.{self.kind_name}.{self.number}"

    @property
    def kind(self):
        return KINDS[self.kind_name]

    @property
    def many_qps(self):
        return self.kind_name == "write_rate_qps"

    @property
    def size(self):
        return 8 if self.many_qps else self.number

    @property
    def qps(self):
        return self.number if self.many_qps else 1

    @property
    def devices(self):
        return (PVRDMA, RXE, TCP) if self.kind.tcp else (PVRDMA, RXE)


# Those with a target; the others make the charts' curves.
MAIN = [
    *(Row(kind, size) for size in (65536, 1048576) for kind in ("write_bw", "read_bw", "send_bw")),
    Row("write_rate", 8), Row("send_rate", 8), Row("write_lat", 8), Row("send_lat", 8),
    Row("pingpong", 4096), Row("pingpong_event", 4096),
]
CURVES = [
    *(Row("write_bw", size) for size in SIZES if size not in (8, 65536, 1048576)),
    *(Row("write_lat", size) for size in SIZES if size != 8),
    *(Row("write_rate_qps", qps) for qps in QPS if qps != 1),
]
EVERY = MAIN + CURVES
QUICK = MAIN + [Row("write_bw", 512), Row("write_lat", 4096), Row("write_rate_qps", 4)]
