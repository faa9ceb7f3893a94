# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The packages under test: bench_lib and vmlab_lib."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SCRIPTS / "bench"), str(SCRIPTS / "lab")]
