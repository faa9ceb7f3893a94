# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/figures: each drawing is that of its source, and layers.dot is that of qemu-device/LAYERS."""

import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from conftest import ROOT, load

FOLDER = ROOT / "docs" / "figures"
LAYERS = (ROOT / "qemu-device" / "LAYERS").read_text()

figures = load("build/figures")


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "figures")
    return tmp_path / "figures"


def wrong(folder, layers=LAYERS):
    return list(figures.stale(folder, layers))


def test_drawings_are_those_of_their_sources():
    run = subprocess.run([ROOT / "scripts/build/figures", "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_four_drawings_are_well_formed():
    drawings = sorted(FOLDER.glob("*.svg"))
    assert [path.stem for path in drawings] == ["layers", "processes", "threads", "write"]
    for path in drawings:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_each_drawing_is_in_a_document():
    text = "".join(path.read_text() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
    for path in FOLDER.glob("*.svg"):
        assert f"figures/{path.name})" in text, path.name


def test_changed_source_is_found(folder):
    with open(folder / "threads.dot", "a") as file:
        file.write("// a change\n")
    assert wrong(folder) == ["threads.svg is not that of threads.dot"]


def test_missing_and_spare_drawings_are_found(folder):
    (folder / "write.svg").rename(folder / "other.svg")
    assert wrong(folder) == ["write.svg is not that of write.dot", "other.svg has no source"]


def test_changed_layers_are_found(folder):
    assert wrong(folder, LAYERS + "new | core\n") == ["layers.dot is not that of qemu-device/LAYERS"]


def test_layers_without_arrows_that_others_imply():
    rows = figures.rows_of("# a comment\ncore |\ngid | core\nrdma | gid core\nnet | core/gid.h\n")
    assert rows["rdma"] == {"gid", "core"} and figures.direct(rows, "rdma") == ["gid"]
    text = figures.layers_dot("core |\nnet | core/gid.h\n")
    assert '"net" -> "core" [style=dashed' in text and 'label="gid.h"' in text


@pytest.mark.skipif(not shutil.which("dot"), reason="graphviz is not installed; only `make figures` needs it")
def test_rendering_leaves_nothing_stale(folder):
    with open(folder / "threads.dot", "a") as file:
        file.write("// a change\n")
    subprocess.run([ROOT / "scripts/build/figures", "--folder", folder], check=True, capture_output=True)
    assert not wrong(folder)
