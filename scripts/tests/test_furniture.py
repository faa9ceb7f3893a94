# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""README.md and the other documents for contributors: links and paths exist, and README.md is one page."""

import re

import pytest
from conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
MAINTAINERS = (ROOT / "MAINTAINERS").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert "://" in target or (page.parent / target).exists(), target


def test_readme_is_one_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "MAINTAINERS"])
def test_documents_for_contributors_exist(name):
    assert "SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB" in (ROOT / name).read_text().splitlines()[0]


def test_maintainers_names_existing_files():
    paths = re.findall(r"^[FP]:\t(.*)$", MAINTAINERS, re.MULTILINE)
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists() and (not path.endswith("/") or (ROOT / path).is_dir()), path


def test_each_folder_of_the_engine_and_daemon_has_a_part():
    for folder in (ROOT / "qemu-device").iterdir():
        if folder.is_dir():
            assert f"F:\tqemu-device/{folder.name}/\n" in MAINTAINERS, folder.name


def test_named_scripts_and_files_of_contributing_exist():
    names = re.findall(r"`((?:scripts|qemu-device|tests|docs|include|drivers)/[\w./-]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(names) > 15
    for name in names:
        assert name.endswith("NAME/") or (ROOT / name).exists() or "NAME" in name, name
