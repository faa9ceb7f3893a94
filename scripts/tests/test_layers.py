# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""scripts/checks/layers on small made-up trees."""

import subprocess

import pytest
from conftest import SCRIPTS, load

LAYERS = """\
api.h | # public
low   | api.h
high  | low api.h
shell | api.h low/plain.h
"""
TREE = {
    "LAYERS": LAYERS,
    "api.h": "int pvr_api(void);\nstruct pvr_api_thing;\n",
    "low/low.h": "int pvr_low(int a,\n\t    int b) __attribute__((warn_unused_result));\n"
                 "static inline int pvr_low_inline(void)\n{\n\treturn 1;\n}\n",
    "low/low.c": '#include "low.h"\n#include "api.h"\n\nconst int pvr_low_table[2] = { 1, 2 };\n\n'
                 "int pvr_low(int a,\n\t    int b)\n{\n\treturn a + b;\n}\n\n"
                 "static int pvr_same(void)\n{\n\treturn 0;\n}\n\nint low_user(void)\n{\n\treturn pvr_same();\n}\n",
    "low/plain.h": "static inline int pvr_plain(void)\n{\n\treturn 2;\n}\n",
    "high/high.h": "int pvr_high(void);\n",
    "high/high.c": '#include "high/high.h"\n#include "low/low.h"\n#include "stdio_of_elsewhere.h"\n\n'
                   "int pvr_high(void)\n{\n\treturn pvr_low(1, 2) + pvr_low_inline() + pvr_low_table[0];\n}\n\n"
                   "int pvr_api(void)\n{\n\treturn pvr_high();\n}\n\nint pvr_same(void)\n{\n\treturn 1;\n}\n",
    "shell/main.c": '#include "api.h"\n#include "low/plain.h"\n\nint main(void)\n{\n\treturn pvr_api() + pvr_plain();\n}\n',
}


layers = load("checks/layers")


def check(tmp_path, changes=()):
    """The errors of TREE with some files changed or, where there is no text, removed."""
    for name, text in {**TREE, **dict(changes)}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text)
    return layers.check(tmp_path)


def test_clean_tree_has_no_errors(tmp_path):
    assert check(tmp_path) == []


@pytest.mark.parametrize("name,body,used", [
    ("low/bad.c", "int low_bad(void)\n{\n\treturn pvr_high();\n}\n", "pvr_high"),
    ("low/bad.c", '#include "high/high.h"\n', "high/high.h"),
    ("low/bad.h", "static inline int pvr_bad(void)\n{\n\treturn pvr_high();\n}\n", "pvr_high"),
    ("low/bad.h", "#define BAD() pvr_high()\n", "pvr_high"),
    ("low/bad.c", "int (*const pvr_call)(void) = pvr_high;\n", "pvr_high"),
    ("low/bad.c", "static int (*const call)(void) = pvr_high;\n", "pvr_high"),
    ("low/bad.c", "int low_bad(void)\n{\n\treturn pvr_api();\n}\n", "pvr_api"),
    ("shell/bad.c", "int bad(void)\n{\n\treturn pvr_low_table[1];\n}\n", "pvr_low_table"),
    ("shell/bad.c", "int bad(void)\n{\n\treturn pvr_low_inline();\n}\n", "pvr_low_inline"),
    ("shell/bad.c", '#include "low/low.h"\n', "low/low.h"),
    ("shell/bad.c", '#include "high.h"\n', "high/high.h"),
    ("api.h", TREE["api.h"] + '#include "low/low.h"\n', "low/low.h"),
])
def test_upward_use_is_found(tmp_path, name, body, used):
    assert check(tmp_path, [(name, body)]) == [f"{name}: uses {used}, which LAYERS does not allow"]


@pytest.mark.parametrize("body", [
    "/* pvr_high() does the rest. */\n",
    "// pvr_high(), too\n",
    'static const char name[] = "pvr_high()";\n',
    "int pvr_high(void);\n",
    "typedef int fn(void);\nfn pvr_high, pvr_low;\nextern int pvr_api;\n",
    "struct pvr_high;\nstruct low_ok {\n\tSLIST_HEAD(, pvr_high) list;\n};\n",
    "void low_ok(struct pvr_high *high)\n{\n\thigh->pvr_high = 0;\n}\n",
    "static int pvr_high(void)\n{\n\treturn 0;\n}\n\nint low_ok(void)\n{\n\treturn pvr_high();\n}\n",
])
def test_mention_that_is_no_use_is_allowed(tmp_path, body):
    assert check(tmp_path, [("low/ok.c", body)]) == []


def test_a_list_of_exceptions_excuses_nothing(tmp_path):
    bad = ("low/bad.c", "int low_bad(void)\n{\n\treturn pvr_high();\n}\n")
    assert check(tmp_path, [bad, ("LAYERS.exceptions", "low/bad.c pvr_high\n")]) == [
        "low/bad.c: uses pvr_high, which LAYERS does not allow"]


def test_circle_is_found(tmp_path):
    errors = check(tmp_path, [("LAYERS", LAYERS.replace("low   | api.h", "low | api.h shell\nshell2 | low")
                               .replace("shell | api.h low/plain.h", "shell | high")),
                              ("shell2/x.c", "\n"), ("shell/main.c", "\n")])
    assert errors == ["LAYERS: circle: low -> shell -> high -> low"]


def test_circle_through_a_single_header_is_found(tmp_path):
    errors = check(tmp_path, [("LAYERS", LAYERS.replace("low   | api.h", "low | api.h shell/main.h")), ("shell/main.h", "\n")])
    assert "LAYERS: circle: low -> shell -> low" in errors


LEAF = LAYERS.replace("api.h |", "api.h | low/plain.h", 1).replace("low   | api.h", "low/plain.h |\nlow   | api.h low/plain.h")


def test_header_with_a_row_of_its_own_is_below_its_folder(tmp_path):
    uses = ("api.h", TREE["api.h"] + '#include "low/plain.h"\n')
    assert check(tmp_path, [("LAYERS", LEAF), uses]) == []


def test_header_with_a_row_of_its_own_may_not_include_its_folder(tmp_path):
    leaf = ("low/plain.h", '#include "low/low.h"\n' + TREE["low/plain.h"])
    assert check(tmp_path, [("LAYERS", LEAF), leaf]) == ["low/plain.h: uses low/low.h, which LAYERS does not allow"]


def test_folder_without_a_row_is_an_error(tmp_path):
    assert "LAYERS: no row for new/deep" in check(tmp_path, [("new/deep/x.c", "\n")])
    assert "LAYERS: no row for top.c" in check(tmp_path, [("top.c", "\n")])


def test_row_without_a_folder_and_unknown_names_are_errors(tmp_path):
    errors = check(tmp_path, [("LAYERS", LAYERS + "gone | low\n" + "high2 | low/gone.h\n"), ("high2/x.c", "\n")])
    assert errors == ["LAYERS: row gone: there is no such folder or file with sources",
                      "LAYERS: row high2: low/gone.h is neither a row nor a file"]


@pytest.mark.parametrize("text", ["low\n", LAYERS + "low | api.h\n"])
def test_table_that_cannot_be_read_is_refused(tmp_path, text):
    with pytest.raises(layers.Bad):
        check(tmp_path, [("LAYERS", text)])


def test_exit_status_and_output(tmp_path):
    check(tmp_path, [("low/bad.c", '#include "high/high.h"\n')])
    done = subprocess.run([SCRIPTS / "checks/layers", "--tree", tmp_path], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "low/bad.c: uses high/high.h, which LAYERS does not allow\n")
