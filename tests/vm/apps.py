# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the guests of the application tests have beside the default packages: one image for all of them."""

PACKAGES = ",".join([
    "fio", "iperf3", "netpipe-openmpi", "nfs-common", "nfs-kernel-server", "nvme-cli", "openmpi-bin",
    "openssh-client", "openssh-server", "qperf",
])
