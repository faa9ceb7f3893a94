# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""All applications that are measured, and the Debian packages that they need beside vmlab's own."""

from . import cm, mpi, qp, storage

EVERY = (*cm.APPS, *qp.APPS, *mpi.APPS, *storage.APPS)
ROWS = tuple(row for app in EVERY for row in app.rows)
PACKAGES = ("fio", "iperf3", "netpipe-openmpi", "nfs-common", "nfs-kernel-server", "nvme-cli", "openmpi-bin",
            "openssh-client", "openssh-server", "qperf")
