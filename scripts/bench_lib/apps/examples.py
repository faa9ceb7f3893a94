# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Example programs of the rdma-core that our provider is built with: later ones than Debian 12's, for its librdmacm."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "guest" / "rdmacm"


def build(name):
    """Its path."""
    fetched = subprocess.run([ROOT / "scripts" / "fetch-rdma-core"], stdout=subprocess.PIPE, text=True, check=True,
                             stdin=subprocess.DEVNULL)
    tree = pathlib.Path(fetched.stdout.strip())
    examples = tree / "librdmacm" / "examples"
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "config.h").write_text("")  # for ccan, which does without what it could say
    subprocess.run(["gcc", "-O2", "-I", tree, "-I", FOLDER, "-o", FOLDER / name, examples / f"{name}.c", examples / "common.c",
                    "-lrdmacm", "-libverbs", "-pthread"], check=True, stdin=subprocess.DEVNULL)
    return FOLDER / name
