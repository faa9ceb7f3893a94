# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""scripts/checks/prose on small made-up trees."""

import subprocess
from pathlib import Path

import pytest
from conftest import SCRIPTS, load

prose = load("checks/prose")
WORDS = prose.Words(SCRIPTS / "checks" / "old-words.txt")


def check(tmp_path, files, base=None):
    """The findings and the counts."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    lines = []
    counts = prose.check(tmp_path, WORDS, base, lines.append)
    return [line for line in lines if not line.startswith("commit subjects are not checked")], counts


@pytest.mark.parametrize("name,text,line", [
    ("a.c", "int a; /* whoever calls */\n", 1),
    ("a.h", "/* one\n * Nobody holds it.\n */\n", 2),
    ("a.c", "int a; // for somebody\n", 1),
    ("a.py", "a = 1  # whatever\n", 1),
    ("a.py", 'def f():\n    """First.\n\n    To whom."""\n', 4),
    ("tool", "#!/usr/bin/python3\n# who\n", 2),
    ("tool", "#!/bin/bash\nrun # who\n", 2),
    ("a.sh", "# who\n", 1),
    ("meson.build", "# who\n", 1),
    ("docs/a.md", "# Title\n\nThe one who sends.\n", 3),
    ("README.md", "Nobody\n", 1),
    ("docs/man/a.8", ".Nm a\nwhoever\n", 2),
])
def test_word_in_prose_is_found(tmp_path, name, text, line):
    found, counts = check(tmp_path, {name: text})
    assert len(found) == 1 and found[0].startswith(f"{name}:{line}: "), found
    assert counts == {str(Path(name).parent): 1}


@pytest.mark.parametrize("name,text", [
    ("a.c", 'const char *text = "who"; int who;\n'),
    ("a.c", "int a; /* the whole */\n"),
    ("a.py", 'who = "nobody"\n'),
    ("a.sh", "who=${#nobody}\n"),
    ("tool", "#!/bin/bash\nsed 's#who#x#'\n"),
    ("a.json", '{"who": 1}\n'),
    ("LICENSES/a.md", "whoever\n"),
    ("build/a.md", "whoever\n"),
])
def test_word_elsewhere_is_allowed(tmp_path, name, text):
    assert check(tmp_path, {name: text}) == ([], {})


@pytest.mark.parametrize("text", [
    "a quiet guest", "PVR_EXT_QUIET", "the loans", "it lent memory", "lends", "--rdma-lend", "a crew", "told ahead",
    "orphaned", "a late arm", "late_arm", "patience", "a liar", "BYE", "the verdict", "mailbox", "hung up", "took back",
    "bad weather", "pvr_remote_qp", "pvr_wire_check()", "gid_book", "async=on",
])
def test_old_word_is_found(text):
    assert list(WORDS.find(text)), text


@pytest.mark.parametrize("text", [
    "--quiet", "git log --quiet", "calendar", "a byte", "goodbyes", "remote", "pvr_host", "pvr_adapter_lock", "async",
    "piggyback", "pvr_pipe_rx", "screw", "blend", "relent", "an early frame", "PVR_EXT_DB_SUPPRESS",
])
def test_new_word_is_allowed(text):
    assert not list(WORDS.find(text))


def test_each_old_word_has_a_word_to_use_instead():
    assert all(instead for _, instead in WORDS.patterns)


def test_counts_are_per_folder(tmp_path):
    _, counts = check(tmp_path, {"a.md": "who who\n", "docs/b.md": "who\n"})
    assert counts == {".": 2, "docs": 1}


def test_without_history_subjects_are_skipped_with_a_reason(tmp_path):
    lines = []
    assert not prose.check(tmp_path, WORDS, None, lines.append)
    assert lines == ["commit subjects are not checked: no git history with the commit that added scripts/checks/prose"]


@pytest.fixture
def commit(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
                       stdout=subprocess.DEVNULL, check=True)

    def make(subject, *files):
        for name in files:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("\n")
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", subject)

    git("init", "-q")
    return make


def test_subjects_since_the_commit_that_added_the_check(tmp_path, commit):
    commit("Tell whoever asks")
    commit("Add the check, whatever it finds", "scripts/checks/prose")
    commit("net: Wake nobody")
    found, counts = check(tmp_path, {})
    assert len(found) == 1 and "net: Wake nobody" in found[0]
    assert counts == {"commit subjects": 1}


def test_subjects_since_a_base(tmp_path, commit):
    commit("Tell whoever asks")
    commit("Wake nobody")
    commit("Wake the crew")
    assert check(tmp_path, {}, "HEAD~2")[1] == {"commit subjects": 2}
    assert check(tmp_path, {}, "no-such-revision")[1] == {}


def test_subject_of_a_rename_may_have_the_old_word(tmp_path, commit):
    commit("Begin")
    commit("daemon: Rename crew to worker_pool")
    assert check(tmp_path, {}, "HEAD~1") == ([], {})


def test_files_that_git_ignores_are_left_out(tmp_path, commit):
    (tmp_path / ".gitignore").write_text("junk.md\n")
    commit("Begin", "a.md")
    assert check(tmp_path, {"junk.md": "who\n"}) == ([], {})
