# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/pipe-protocol.md: its numbers are those of qemu-device/path/pipe/frame.h."""

import re

import pytest
from conftest import ROOT, table_rows

DOC = ROOT / "docs" / "pipe-protocol.md"
HEADER = ROOT / "qemu-device" / "path" / "pipe" / "frame.h"
SIZES = {"__u8": 1, "char": 1, "__le16": 2, "__le32": 4, "__le64": 8, "struct pvr_frame": 8}
# Frames, and the struct of each.
STRUCTS = {
    "HELLO": "pvr_frame_hello", "CLOSE": "pvr_frame_close", "PING": "pvr_frame_ping", "PONG": "pvr_frame_ping",
    "VERBS_QP": "pvr_frame_verbs_qp", "FABRIC": "pvr_frame_fabric",
    "GID_QUERY": "pvr_frame_gid_query", "GID_REPLY": "pvr_frame_gid_query",
    "REQUEST": "pvr_frame_request", "DATAGRAM": "pvr_frame_datagram", "QP_GONE": "pvr_frame_qp_gone", "ACK": "pvr_frame_ack",
    "ATOMIC_ACK": "pvr_frame_atomic_ack", "READ_DATA": "pvr_frame_read_data",
    "RNDV_DONE": "pvr_frame_rndv_done",
}


def constants(text):
    """Name -> value of each #define that is a number, or computed of such."""
    found = {}
    for name, value in re.findall(r"^#define (\w+) ([^/\n]+)", text, re.M):
        value = re.sub(r"\b(0x[0-9a-f]+|\d+)(?:u|ull)\b", r"\1", value.strip())
        if re.fullmatch(r"[0-9a-fx() <]+", value):
            found[name] = int(eval(value))  # pylint: disable=eval-used
    return found


def enum(text, name):
    """The values of an enum."""
    body = re.sub(r"/\*.*?\*/", "", re.search(rf"enum {name} {{(.*?)}};", text, re.S)[1], flags=re.S)
    values, number = {}, 0
    for item in filter(None, (part.strip() for part in body.split(","))):
        label, _, value = item.partition(" = ")
        number = int(value) if value else number
        values[label] = number
        number += 1
    return values


def values(text, name, prefix):
    """The values of an enum by their names without the prefix, without NUM."""
    found = {label.removeprefix(prefix): number for label, number in enum(text, name).items()}
    del found["NUM"]
    return found


def layouts(text):
    """Struct -> (offset, size, name) of each field, as a compiler that adds no padding has them."""
    sizes = constants(text)
    found = {}
    for struct, body in re.findall(r"^struct (\w+) {[^\n]*\n(.*?)^};", text, re.S | re.M):
        fields, offset = [], 0
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        for kind, names in re.findall(r"^\t((?:struct )?\w+) ([^;]+);", body, re.M):
            for name, count in re.findall(r"(\w+)(?:\[(\w+)\])?(?:,|$)", names):
                size = SIZES[kind] * (int(sizes.get(count, count)) if count else 1)
                fields.append((offset, size, name))
                offset += size
        found[struct] = fields
    return found


def asserted_sizes(text):
    return {name: int(size) for name, size in re.findall(r"^PVR_FRAME_SIZE\((\w+), (\d+)\);", text, re.M)}


def sections(doc):
    """Heading -> text, of the third level."""
    parts = re.split(r"^### (.*)$", doc, flags=re.M)
    return dict(zip(parts[1::2], (part.split("\n## ")[0] for part in parts[2::2])))


def rows(text):
    return [row for row in table_rows(text) if row[0].isdigit()]


def table_of(text):
    """(offset, size, name) of the first table of a section."""
    return [(int(row[0]), int(row[1]), row[2].strip("`")) for row in rows(text)
            if len(row) == 4 and row[1].isdigit() and row[2].startswith("`")]


def named(text):
    """Number -> name, of tables whose second column is a name in capitals."""
    return {row[1].strip("`"): int(row[0]) for row in rows(text) if re.fullmatch(r"`[A-Z_]+`", row[1])}


@pytest.fixture(scope="module")
def header():
    return HEADER.read_text()


@pytest.fixture(scope="module")
def doc():
    return DOC.read_text()


def frames_of(heading):
    """The frames that a heading names, with their numbers: 'PING (3), PONG (4)'."""
    return {name: int(number) for name, number in re.findall(r"([A-Z_]+) \((\d+)\)", heading)}


def test_layouts_are_as_long_as_the_header_asserts(header):
    found = layouts(header)
    sizes = asserted_sizes(header)
    assert len(sizes) == 15
    for struct, size in sizes.items():
        offset, last, _ = found[struct][-1]
        assert offset + last == size, struct


def test_each_frame_has_a_section_with_its_number(header, doc):
    seen = {}
    for heading in sections(doc):
        seen.update(frames_of(heading))
    assert seen == values(header, "pvr_frame_type", "PVR_FRAME_")


def test_fields_are_those_of_the_header(header, doc):
    found = layouts(header)
    for heading, text in sections(doc).items():
        for name in frames_of(heading):
            assert table_of(text) == [field for field in found[STRUCTS[name]] if field[2] != "frame"], name
    assert table_of(sections(doc)["How a frame begins"]) == found["pvr_frame"]
    assert table_of(doc.split("\n## Rendezvous\n")[1]) == found["pvr_frame_rndv_seg"]


@pytest.mark.parametrize("heading, name, prefix", [
    ("CLOSE (2)", "pvr_close_reason", "PVR_CLOSE_"),
    ("REQUEST (10)", "pvr_frame_op", "PVR_FRAME_OP_"),
])
def test_numbers_of_one_table(header, doc, heading, name, prefix):
    assert named(sections(doc)[heading]) == values(header, name, prefix)


def test_syndromes_and_refusals(header, doc):
    first, second = sections(doc)["ACK (17)"].split("With NAK")
    assert named(first) == values(header, "pvr_frame_syndrome", "PVR_FRAME_SYN_")
    assert named(second) == values(header, "pvr_frame_nak", "PVR_FRAME_NAK_")


def test_flags(header, doc):
    flags = {label.split("_F_")[1]: number for label, number in constants(header).items()
             if label.startswith(("PVR_REQUEST_F_", "PVR_FRAME_F_"))}
    seen = {label: int(number, 16) for number, label in re.findall(r"^\| (0x\d+) \| `([A-Z]+)` \|", doc, re.M)}
    assert len(flags) == 4 and seen == flags


def test_limits(header, doc):
    values = constants(header)
    seen = {name: int(value) for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \|", doc, re.M)}
    assert len(seen) >= 7
    assert seen == {name: values[name] for name in seen}
    assert f"{values['PVR_FRAME_MAGIC']:#x}" in sections(doc)["HELLO (1)"]


def test_the_check_sees_a_wrong_number(header):
    assert layouts(header)["pvr_frame_ack"][4] == (12, 4, "epoch")
    assert table_of("| 12 | 4 | `epoch` | x |") != [(12, 8, "epoch")]
    assert enum("enum e {\n\tA = 4,\n\tB, /* c, d */\n};", "e") == {"A": 4, "B": 5}
