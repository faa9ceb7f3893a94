# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/abi.rst: its constants and layouts are those of the headers, as a compiler has them, and it has them all."""

import re
import shutil
from pathlib import Path

import c_headers
import pytest
from conftest import ROOT

DOC = ROOT / "docs" / "abi.rst"
INCLUDE = ROOT / "include"
OURS = ["pvrdma_abi.h", "pvrdma_abi_cmd.h"]
WQE = "pvrdma_abi_wqe.h"  # layouts of the uapi header, which the header itself asserts
UAPI = "rdma/vmw_pvrdma-abi.h"
UVERBS = {"pvr_alloc_ucontext", "pvr_dm_query_resp", "pvr_clock_query_resp"}  # between provider and driver

TABLE = re.compile(r"^\.\. csv-table::(?: (.*))?\n((?:   :.*\n)+)\n((?:   .*\n)+)", re.M)
LAYOUT = re.compile(r"``((?:struct|union) \w+)``, (\d+) bytes")


# ------------------------------------------------------------------ document

def tables(text):
    """(caption, columns, rows) of each table."""
    for caption, options, body in TABLE.findall(text):
        columns = re.search(r":header: (.*)", options)[1].split(", ")
        yield caption, columns, [[cell.strip() for cell in line.split("|")] for line in body.splitlines()]


def number(cell):
    """The value of '12', '0x1f' or '1 << 4'."""
    base, _, shift = cell.partition(" << ")
    return int(base, 0) << int(shift or 0)


def documented(text):
    """{constant: value}, {struct: (size, [(offset, size, field), ...])}; each name may stand once."""
    constants, structs = {}, {}
    for caption, columns, rows in tables(text):
        layout = LAYOUT.fullmatch(caption)
        if layout:
            assert layout[1] not in structs, layout[1]
            structs[layout[1]] = int(layout[2]), [(int(row[0]), int(row[1]), row[2].strip("`")) for row in rows]
        elif columns[:2] in (["Value", "Name"], ["Offset", "Name"]):
            for row in rows:
                name = row[1].strip("`")
                assert name not in constants, name
                constants[name] = number(row[0])
    return constants, structs


# ------------------------------------------------------------------- headers

def compiled_abi(include, folder):
    """What documented() should return, of our headers in a folder and of the kernel's."""
    source = f"#include <{UAPI}>\n"
    uapi = re.search(rf"(\S*/{re.escape(UAPI)})", c_headers.run([*c_headers.CC, "-M", "-xc", "-"], input=source))[1]
    texts = [c_headers.read(path) for path in (Path(uapi), *(include / name for name in OURS))]
    return c_headers.compiled(texts, OURS, [f"-I{include}"], folder)


# --------------------------------------------------------------------- tests

def differences(seen, wanted):
    """Complaints, of two pairs of documented() or compiled_abi()."""
    wrong = []
    for what, doc, header in zip(("constant", "layout"), seen, wanted):
        wrong += [f"{what} {name} is not in the document" for name in header if name not in doc]
        wrong += [f"{what} {name} is not in the headers" for name in doc if name not in header]
        wrong += [f"{what} {name}: {doc[name]}, expected {header[name]}" for name in doc
                  if name in header and doc[name] != header[name]]
    return wrong


@pytest.fixture(scope="module", name="text")
def fixture_text():
    return DOC.read_text()


@pytest.fixture(scope="module", name="headers")
def fixture_headers(tmp_path_factory):
    return compiled_abi(INCLUDE, tmp_path_factory.mktemp("abi"))


def test_document_is_that_of_the_headers(text, headers):
    constants, structs = headers
    assert len(constants) > 250 and len(structs) > 60
    assert differences(documented(text), headers) == []


def test_headers_assert_each_size(headers):
    """The numbers of the document are those of every compiler, not of this machine's only."""
    text = "".join((INCLUDE / name).read_text() for name in OURS)
    asserted = {f"struct {name}": int(size) for name, size in re.findall(r"^PVR_ABI_SIZE\((\w+), (\d+)\);", text, re.M)}
    ours = {name for name in headers[1] if name.startswith("struct pvr_")}
    assert ours <= set(asserted)
    assert {name: headers[1][name][0] for name in asserted} == asserted


def host_words(name, text):
    """Members in the byte order of the CPU, of the structs that the device reads or writes."""
    wrong = []
    for struct, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S):
        if struct not in UVERBS:
            wrong += [f"{name}: {struct}: {member}"
                      for member in re.findall(r"^\s+((?:__u(?:16|32|64)|__aligned_u64)\b.*?;)", body, re.M)]
    return wrong


def test_words_of_the_device_have_a_byte_order():
    """sparse then finds each missing conversion of the driver."""
    texts = {name: (INCLUDE / name).read_text() for name in [*OURS, WQE]}
    assert [wrong for name, text in texts.items() for wrong in host_words(name, text)] == []
    assert UVERBS <= set(re.findall(r"^struct (\w+) \{", texts[OURS[0]], re.M))
    assert host_words("x", "struct pvr_x {\n\t__le32 a;\n\t__u32 b; /* b */\n};\n") == ["x: pvr_x: __u32 b;"]


def test_rows_have_a_cell_per_column(text):
    assert text.count(".. csv-table::") == len(list(tables(text)))
    for caption, columns, rows in tables(text):
        for row in rows:
            assert len(columns) - 1 <= len(row) <= len(columns), (caption, row)


def test_each_extension_has_a_section(text, headers):
    bits = [name for name in headers[0] if re.fullmatch(r"PVR_EXT_\w+", name)]
    sections = re.findall(r"^(PVR_EXT_\w+)(?:: .*)?\n-{8,}$", text, re.M)
    assert sorted([*sections, "PVR_EXT_ALL", "PVR_EXT_MAGIC"]) == sorted(bits)


def test_commands_name_their_layouts(text, headers):
    rows = next(rows for caption, _, rows in tables(text) if caption == "Commands")
    assert len(rows) == headers[0]["PVR_CMD_NUM"]
    for row in rows:
        names = re.findall(r"``(pvr_\w+)``", " ".join(row[2:4]))
        assert names and all(f"struct {name}" in headers[1] for name in names), row
        extensions = re.findall(r"``(\w+)``", row[4]) if len(row) > 4 else []
        assert all(name in headers[0] for name in extensions), row


def documented_statuses(text):
    """(command, errno, cause) of each row."""
    rows = next(rows for caption, _, rows in tables(text) if caption == "Statuses and their causes")
    return [(row[0].strip("`").replace("every command", "ANY_CMD"), row[1], row[2].upper()) for row in rows]


def test_statuses_are_those_that_the_driver_judges(text, headers):
    driver = re.findall(r"^\t\{ (\w+), (\w+), (\w+) \},$", (ROOT / "drivers" / "status.c").read_text(), re.M)
    assert documented_statuses(text) == driver
    assert len(driver) > 70 and len(set(driver)) == len({row[:2] for row in driver}) == len(driver)
    assert {row[0] for row in driver} - {"ANY_CMD"} <= set(headers[0])


def test_a_status_with_another_cause_is_found(text):
    changed = text.replace("``PVR_CMD_DESTROY_MR`` | EBUSY | program", "``PVR_CMD_DESTROY_MR`` | EBUSY | defect")
    assert documented_statuses(changed) != documented_statuses(text)


@pytest.mark.parametrize("number_before, number_after", [
    ("   944 | ``PVR_MAX_INLINE``", "   945 | ``PVR_MAX_INLINE``"),
    ("   72 | 208 | ``caps``", "   80 | 208 | ``caps``"),
    ("   72 | 208 | ``caps``", "   72 | 212 | ``caps``"),
    ("``struct pvr_dsr``, 280 bytes", "``struct pvr_dsr``, 284 bytes"),
    ("   1 << 2 | ``PVR_EXT_INLINE``", "   1 << 3 | ``PVR_EXT_INLINE``"),
    ("   40 | 4 | ``wr.rdma.rkey``", "   44 | 4 | ``wr.rdma.rkey``"),
    ("``PVR_PORT_DOWN``", "``PVR_PORT_GONE``"),
])
def test_a_wrong_number_in_the_document_is_seen(text, headers, number_before, number_after):
    assert text.count(number_before) == 1
    assert differences(documented(text.replace(number_before, number_after)), headers)


@pytest.mark.parametrize("header, before, after", [
    ("pvrdma_abi.h", "#define PVR_MAX_INLINE 944", "#define PVR_MAX_INLINE 945"),
    ("pvrdma_abi.h", "#define PVR_MAX_INLINE 944", "#define PVR_MAX_INLINE 944\n#define PVR_NEW 1"),
    ("pvrdma_abi.h", "PVR_EVENT_NUM,", "PVR_EVENT_NEW,\n\tPVR_EVENT_NUM,"),
    ("pvrdma_abi_cmd.h", "#define PVR_MR_FLAG_DMA (1u << 0)", "#define PVR_MR_FLAG_DMA (1u << 7)"),
    ("pvrdma_abi_cmd.h", "__le16 max_atomic_arg;", "__le16 max_other_arg;"),
    ("pvrdma_abi_cmd.h", "/* Contents of the slots. */", "struct pvr_new {\n\t__u32 word;\n};"),
])
def test_a_change_of_a_header_is_seen(text, tmp_path, header, before, after):
    include = tmp_path / "include"
    shutil.copytree(INCLUDE, include)
    changed = (include / header).read_text()
    assert changed.count(before) == 1
    (include / header).write_text(changed.replace(before, after))
    assert differences(documented(text), compiled_abi(include, tmp_path))


def test_fields_of_a_struct_are_found():
    body = "\n\t__u32 a, b;\n\tunion {\n\t\t__u8 c[4];\n\t\tstruct {\n\t\t\tstruct x d;\n\t\t} in;\n\t} u;\n\t__le64 e;\n"
    assert c_headers.field_names(body) == ["a", "b", "u.c", "u.in.d", "e"]
    assert [number(cell) for cell in ("12", "0x1f", "1 << 4")] == [12, 31, 16]
