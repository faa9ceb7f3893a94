# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Targets of the rows of native.json, vm.json, apps.json, hosts.json and wire.json."""

import re


class Target:
    """FIELD ("value" or "ratio") at least or at most LIMIT; TEXT: the same for people."""

    def __init__(self, field, at_least, limit, text):
        self.field, self.at_least, self.limit, self.text = field, at_least, limit, text

    def met(self, row):
        return row[self.field] >= self.limit if self.at_least else row[self.field] <= self.limit


BANDWIDTH = Target("ratio", True, 0.95, ">= 0.95 x")
# Patterns of whole names; the first that fits counts.
TARGETS = [
    (r"(write|read)_bw(_linear|_pages|_cold)?\.(65536|1048576)", BANDWIDTH),
    (r"write_rate\.8", Target("value", True, 10e6, ">= 10 M/s")),
    (r"write_insn\.8", Target("value", False, 400, "<= 400")),
    (r"send_rate\.8", Target("value", True, 6e6, ">= 6 M/s")),
    (r"write_lat(_1thread)?\.8", Target("value", False, 0.5e-6, "<= 0.5 us")),
    (r"write_rate_10kqp\.8", Target("ratio", True, 0.8, ">= 0.8 x")),
    (r"write_rate_2workers\.8", Target("ratio", True, 1.8, ">= 1.8 x")),
    (r"write_rate_logged\.8", Target("ratio", True, 0.7, ">= 0.7 x")),
    (r"write_bw_logged\.65536", Target("ratio", True, 0.97, ">= 0.97 x")),
    (r"migrate_pause\.1", Target("value", False, 10e-3, "<= 10 ms")),
    (r"migrate_pause\.1000", Target("value", False, 40e-3, "<= 40 ms")),
    (r"migrate_pause\.10000", Target("value", False, 200e-3, "<= 200 ms")),
    (r"write_rate_neighbors(_single)?\.8", Target("ratio", True, 0.8, ">= 0.8 x")),
    (r"write_rate_beside_limited\.8", Target("ratio", True, 0.97, ">= 0.97 x")),
    (r"qos_(rate|messages)_error", Target("value", False, 2, "<= 2 %")),
    (r"share_least", Target("value", True, 0.9, ">= 0.9 x")),
    (r"share_most", Target("value", False, 1.1, "<= 1.1 x")),
    (r"delay_p999_beside_streams", Target("value", False, 1e-3, "<= 1 ms")),
    (r"qp_bytes", Target("value", False, 1024, "<= 1 KiB")),
    (r"mr_reg_1g(_scattered)?", Target("value", False, 20e-3, "<= 20 ms")),
    (r"mr_lookup", Target("ratio", True, 0.8, ">= 0.8 x")),
    (r"idle_(cpu|switches)_(64|256)", Target("value", False, 0, "0")),
    (r"hostile_(doorbells|indices)", Target("ratio", True, 0.8, ">= 0.8 x")),
    (r"vm\.(write|read|send)_bw\.(65536|1048576)", Target("ratio", True, 300, ">= 300 x")),
    (r"vm\.(write|send)_rate\.8", Target("ratio", True, 50, ">= 50 x")),
    (r"vm\.(write|send)_lat\.8", Target("ratio", False, 1 / 10, "<= 1/10")),
    (r"vm\.pingpong\.4096", Target("ratio", False, 1 / 20, "<= 1/20")),
    (r"guest\.insn_(requester|post_poll)\.write_stream", Target("value", False, 120, "<= 120")),
    (r"guest\.(accesses|interrupts|syscalls)\.write_stream", Target("value", False, 0.01, "<= 0.01")),
    (r"apps\.netpipe_lat", Target("ratio", False, 1 / 5, "<= 1/5")),
    (r"apps\.netpipe_peak", Target("ratio", True, 100, ">= 100 x")),
    (r"apps\.mpi_\w+\.(rate|bandwidth|both_ways)", Target("ratio", True, 10, ">= 10 x")),
    (r"apps\.mpi_\w+\.\w+", Target("ratio", False, 1 / 10, "<= 1/10")),
    (r"apps\.rping", Target("ratio", True, 1, ">= 1 x")),
    (r"apps\.qp_create(_destroy)?", Target("ratio", False, 1, "<= 1 x")),
    (r"apps\.cmtime", Target("ratio", True, 2, ">= 2 x")),
    (r"hosts\.(write|read|send)_bw\.1048576", Target("ratio", True, 0.9, ">= 0.9 x")),
    (r"hosts\.write_bw_2qps\.1048576", Target("ratio", True, 1.3, ">= 1.3 x")),
    (r"hosts\.tls_write_bw\.1048576", Target("ratio", True, 0.8, ">= 0.8 x")),
    (r"hosts\.verbs_write_bw\.1048576", Target("ratio", True, 0.8, ">= 0.8 x")),
    (r"hosts\.write_lat(_busy)?\.8", Target("ratio", False, 1.5, "<= 1.5 x")),
    (r"wire\.write_bw(_4096)?\.65536", Target("value", True, 2.5e9, ">= 2.5 GB/s")),
    (r"wire\.write_bw_no_gso\.65536", Target("value", True, 0.4e9, ">= 0.4 GB/s")),
    (r"wire\.write_bw_4096_no_gso\.65536", Target("value", True, 1.2e9, ">= 1.2 GB/s")),
    (r"wire\.read_bw(_4096)?\.65536", Target("ratio", True, 0.64, ">= 0.64 x")),
    (r"wire\.write_rate\.8", Target("value", True, 3e6, ">= 3 M/s")),
    (r"wire\.write_rate_no_gso\.8", Target("value", True, 0.35e6, ">= 0.35 M/s")),
    (r"wire\.write_lat\.8", Target("value", False, 12e-6, "<= 12 us")),
    (r"wire\.rxe_write_bw_(out|in)\.65536", Target("ratio", True, 1.3, ">= 1.3 x")),
    (r"wire\.cpu(_4096)?", Target("value", False, 0.6, "<= 0.6 s/GB")),
    (r"wire\.cpu(_4096)?_no_gso", Target("value", False, 1.5, "<= 1.5 s/GB")),
    (r"apps\.nvme_random_read(_single)?", Target("ratio", True, 10, ">= 10 x")),
    (r"apps\.nvme_(read|write)", Target("ratio", True, 20, ">= 20 x")),
    (r"vm\.pingpong_event\.4096", Target("ratio", False, 1 / 5, "<= 1/5")),
]


def target_of(name):
    for pattern, target in TARGETS:
        if re.fullmatch(pattern, name):
            return target
    return None
