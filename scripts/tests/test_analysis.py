# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""scripts/checks/analysis: it finds faults of each kind, covers all files, and each suppression has a reason."""

import re
import subprocess
import textwrap

import pytest
from conftest import ROOT, load

analysis = load("checks/analysis")

FLAGS = ["-std=gnu11", "-include", analysis.QUEUE_MODEL]
USE_AFTER_FREE = """
    #include <stdlib.h>

    int use(void)
    {
    	int *number = calloc(1, sizeof(*number)), result;

    	if (!number)
    		return 0;
    	free(number);
    	result = *number;
    	return result;
    }
    """
NO_FAULT = USE_AFTER_FREE.replace("free(number);", "").replace("= *number;", "= *number;\n    	free(number);")
QUEUE = """
    #include <stdlib.h>
    #include <sys/queue.h>

    struct entry {{
    	LIST_ENTRY(entry) list;
    	TAILQ_ENTRY(entry) tail;
    }};

    LIST_HEAD(list, entry);
    TAILQ_HEAD(tail, entry);

    static void del(struct tail *tail, struct entry *entry)
    {{
    	{remove};
    	free(entry);
    }}

    void clear(struct list *list, struct tail *tail)
    {{
    	while ({first})
    		del(tail, {first});
    }}
    """


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(analysis, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(analysis, "CPPCHECK_RESULTS", tmp_path / "cppcheck")


@pytest.fixture
def file(tmp_path):
    """A function that writes a C file and returns its path."""
    def write(text):
        path = tmp_path / "file.c"
        path.write_text(textwrap.dedent(text))
        return str(path)
    return write


def group(path, flags=FLAGS):
    """A Group with that file only."""
    made = analysis.Group("files", [], lambda: flags)
    made.files = [path]
    return made


def analyze(path, capsys):
    """Return: the TAP output of an analysis of that file; whether it failed."""
    tap = analysis.Tap()
    analysis.analyze([group(path)], tap)
    return capsys.readouterr().out, tap.failed


# --- findings

def test_file_without_fault_passes(file, capsys):
    out, failed = analyze(file(NO_FAULT), capsys)
    assert not failed and "ok 1 - clang-tidy files\n" in out and "ok 2 - cppcheck files\n" in out


def test_use_after_free_fails_in_both_tools(file, capsys):
    out, failed = analyze(file(USE_AFTER_FREE), capsys)
    assert failed
    assert "not ok 1 - clang-tidy files\n" in out and "[clang-analyzer-unix.Malloc" in out
    assert "not ok 2 - cppcheck files\n" in out and "[deallocuse]" in out


def test_fault_in_a_header_fails(file, tmp_path):
    (tmp_path / "part.h").write_text("static inline int divide(int a)\n{\n\tint zero = 0;\n\n\treturn a / zero;\n}\n")
    found, _ = analysis.Tidy().run(file('#include "part.h"\nint f(void);\nint f(void)\n{\n\treturn divide(1);\n}\n'), FLAGS)
    assert "part.h:5" in found and "core.DivideZero" in found


def test_file_that_does_not_compile_fails(file):
    found, _ = analysis.Tidy().run(file("#include <no_such_header.h>\n"), FLAGS)
    assert "no_such_header.h" in found


@pytest.mark.parametrize("first, remove", [("LIST_FIRST(list)", "LIST_REMOVE(entry, list)"),
                                           ("TAILQ_FIRST(tail)", "TAILQ_REMOVE(tail, entry, tail)")])
def test_queue_that_is_emptied_passes(first, remove, file):
    assert analysis.Tidy().run(file(QUEUE.format(first=first, remove=remove)), FLAGS) == ("", False)


def test_entry_of_a_queue_that_is_used_after_free_fails(file):
    text = QUEUE.format(first="LIST_FIRST(list)", remove="free(entry)")
    found, _ = analysis.Tidy().run(file(text), FLAGS)
    assert "unix.Malloc" in found


def test_macro_of_the_kernel_is_known_to_cppcheck(file):
    path = file("""
        static int UVERBS_HANDLER(ALLOC_PD)(struct bundle *attrs)
        {
        	return attrs->n;
        }
        """)
    assert "[unknownMacro]" in analysis.cppcheck("files", [path], [])
    assert not analysis.cppcheck("files", [path], [], [f"--library={analysis.KERNEL_MACROS}"])


# --- the cache

def test_file_without_findings_is_not_analyzed_again_until_it_changes(file):
    tidy = analysis.Tidy()
    path = file(NO_FAULT)
    assert tidy.run(path, FLAGS) == ("", False)
    assert tidy.run(path, FLAGS) == ("", True)
    assert tidy.run(path, [*FLAGS, "-DOTHER"]) == ("", False)
    assert tidy.run(file(NO_FAULT + "/* another comment */\n"), FLAGS) == ("", False)


def test_file_with_findings_is_analyzed_again(file):
    tidy = analysis.Tidy()
    path = file(USE_AFTER_FREE)
    first, second = tidy.run(path, FLAGS), tidy.run(path, FLAGS)
    assert first == second and first[0] and not first[1]


# --- the files of this project

def test_each_c_file_is_in_one_group():
    places = ["qemu-device", "tests/lib", "tests/fuzz", "rdma-core-provider/providers/pvrdma", "drivers"]
    here = {path.relative_to(ROOT).as_posix() for place in places for path in (ROOT / place).rglob("*.c")}
    here -= {path for path in here if path.endswith(".mod.c")}
    listed = [path for each in analysis.GROUPS for path in each.files]
    assert sorted(listed) == sorted(here) and all(each.files for each in analysis.GROUPS)


def test_unknown_file_is_refused(capsys):
    done = subprocess.run([ROOT / "scripts/checks/analysis", "no/such/file.c"], capture_output=True, text=True)
    assert done.returncode and "no/such/file.c: in no group" in done.stderr


# --- suppressions

def test_each_check_that_is_off_has_a_reason():
    text = (ROOT / analysis.CONFIG).read_text()
    reasons, _, checks = text.partition("\nChecks:")
    off = re.findall(r"-([a-z][\w.*-]+)", checks.split("\nWarningsAsErrors")[0].replace("'-*", ""))
    off = [check for check in off if f"-{check}" in checks and re.search(rf"[ ,]-{re.escape(check)}[,']", checks)]
    assert len(off) > 10
    assert not [check for check in off if not re.search(rf"^# -(.*, -)?{re.escape(check)}(, -.*)?:", reasons, re.M)]


def test_each_suppression_of_cppcheck_has_a_reason():
    paragraphs = (ROOT / analysis.SUPPRESSIONS).read_text().strip().split("\n\n")[1:]
    assert len(paragraphs) > 2
    for paragraph in paragraphs:
        *reason, check = paragraph.splitlines()
        assert reason and all(line.startswith("# ") for line in reason) and re.fullmatch(r"\w+", check)


def test_each_suppression_in_the_source_names_the_check_and_the_reason():
    wrong = []
    for each in analysis.GROUPS:
        for path in each.files:
            for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
                if "NOLINT" in line and not re.search(r"NOLINT(NEXTLINE)?\([\w.-]+\): \w.* \w", line):
                    wrong.append(f"{path}:{number}")
                if "cppcheck-suppress" in line and not re.search(r"cppcheck-suppress \w+ ; \w.* \w", line):
                    wrong.append(f"{path}:{number}")
    assert not wrong
