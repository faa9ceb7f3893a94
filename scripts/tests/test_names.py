# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""scripts/checks/names on small made-up trees."""

import pytest
from conftest import load

names = load("checks/names")


def header(guard, body=""):
    return f"#ifndef {guard}\n#define {guard}\n\n{body}\n#endif\n"


def check(tmp_path, **files):
    for name, text in files.items():
        folder, _, rest = name.partition("_")
        stem, _, suffix = rest.rpartition("_")
        path = tmp_path / folder / f"{stem}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return names.check(tmp_path)


@pytest.mark.parametrize("kind", ["struct", "union", "enum"])
def test_tag_that_two_files_define_is_found(tmp_path, kind):
    body = f"{kind} pvr_box {{\n\tint a;\n}};\n"
    assert check(tmp_path, a_x_h=header("PVR_X_H", body), b_y_c=body) == ["tag pvr_box: a/x.h, b/y.c"]


def test_declaration_and_use_of_a_tag_are_no_definitions(tmp_path):
    assert check(tmp_path, a_x_h=header("PVR_X_H", "struct pvr_box {\n\tint a;\n};\n"),
                 b_y_c="struct pvr_box;\nint f(struct pvr_box *box)\n{\n\treturn 0;\n}\n") == []


def test_include_guard_of_two_headers_is_found(tmp_path):
    assert check(tmp_path, a_x_h=header("PVR_X_H"), b_x_h=header("PVR_X_H")) == ["include guard PVR_X_H: a/x.h, b/x.h"]


def test_include_guard_of_another_name_is_found(tmp_path):
    assert check(tmp_path, a_x_h=header("PVR_LINK_H")) == ["a/x.h: include guard PVR_LINK_H, expected one that ends with X_H"]


def test_header_without_guard_is_found(tmp_path):
    assert check(tmp_path, a_x_h="int a;\n") == ["a/x.h: no include guard"]


def test_function_that_two_files_define_is_found(tmp_path):
    body = "int\npvr_run(int a,\n\tint b)\n{\n\treturn a;\n}\n"
    assert check(tmp_path, a_x_c=body, b_y_c=body) == ["function pvr_run: a/x.c, b/y.c"]


@pytest.mark.parametrize("body", [
    "static int pvr_run(void)\n{\n\treturn 0;\n}\n", "int pvr_run(void);\n", "/* int pvr_run(void)\n{ */\n",
    "int f(void)\n{\n\treturn pvr_run();\n}\n",
])
def test_static_declared_or_called_function_is_no_second_one(tmp_path, body):
    assert check(tmp_path, a_x_c="int pvr_run(void)\n{\n\treturn 0;\n}\n", b_y_c=body) == []


def test_main_and_files_built_in_place_of_others_are_left_out(tmp_path):
    body = "int main(void)\n{\n\treturn 0;\n}\n"
    nic = "int pvr_nic(void)\n{\n\treturn 0;\n}\n"
    assert check(tmp_path, a_x_c=body + nic, b_y_c=body, a_x_absent_c=nic) == []
