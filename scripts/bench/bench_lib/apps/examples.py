# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Example programs of the rdma-core that our provider is built with: later ones than Debian 12's, for its librdmacm."""

import pathlib
import re
import subprocess

from bench_lib.scripts import path_from

ROOT = pathlib.Path(__file__).resolve().parents[4]
FOLDER = ROOT / "build" / "guest" / "rdmacm"

# rping closes its event channel while its thread may be about to wait for the next event. That ends the program with
# status 255 and "rdma_get_cm_event: Bad file descriptor", on all devices, in about one of 64 runs on one CPU.
END_THREAD = "if (cb->cmthread) { pthread_cancel(cb->cmthread); pthread_join(cb->cmthread, NULL); } "


def _mend_rping(text):
    text, times = re.subn(r"(?=rdma_destroy_event_channel\()", END_THREAD, text)
    if times != 1:
        raise RuntimeError(f"rping.c closes its event channel in {times} places, expected 1: see {__file__}")
    return text


MENDS = {"rping": _mend_rping}


def build(name):
    """Its path."""
    tree = path_from("fetch/rdma-core")
    examples = tree / "librdmacm" / "examples"
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "config.h").write_text("")  # for ccan, which does without what it could say
    source = FOLDER / f"{name}.c"
    source.write_text(MENDS.get(name, str)((examples / source.name).read_text()))
    subprocess.run(["gcc", "-O2", "-I", tree, "-I", examples, "-I", FOLDER, "-o", FOLDER / name, source, examples / "common.c",
                    "-lrdmacm", "-libverbs", "-pthread"], check=True, stdin=subprocess.DEVNULL)
    return FOLDER / name
