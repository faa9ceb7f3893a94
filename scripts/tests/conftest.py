# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The packages under test: bench_lib, vmlab_lib and those of checks; programs, loaded as modules; tables of documents."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
sys.path[:0] = [str(SCRIPTS / name) for name in ("bench", "lab", "lib")]


def load(name):
    """Return: a Python program of scripts/ as a module."""
    loader = importlib.machinery.SourceFileLoader("pvr_" + name.replace("/", "_").replace("-", "_"), str(SCRIPTS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def table_rows(text):
    """The cells of each line of a table in Markdown."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
