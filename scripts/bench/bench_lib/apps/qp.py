# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The time of calls that create and destroy queue pairs."""

import re

from bench_lib.scripts import path_from
from bench_lib.vm.output import Unreadable

from .app import PVRDMA, RXE, App, Row

CREATE = Row("apps.qp_create", "s", "`ibv_create_qp()`, 100 one after another")
CREATE_DESTROY = Row("apps.qp_create_destroy", "s", "the same and `ibv_destroy_qp()`")


def read(text):
    found = dict(re.findall(r"^@(qp_\w+)_ns (\d+)$", text, re.MULTILINE))
    try:
        return {row.name: int(found[row.name.removeprefix("apps.")]) * 1e-9 for row in (CREATE, CREATE_DESTROY)}
    except KeyError as why:
        raise Unreadable("pvr_qpcost printed no times") from why


APPS = (App("qp_cost", (PVRDMA, RXE), (CREATE, CREATE_DESTROY), read, 60,
            lambda: [path_from("build/guest-tests") / "pvr_qpcost"]),)
