# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/pipe-protocol.md: its numbers are those of qemu-device/path/pipe/frame.h."""

import re
from types import SimpleNamespace

import c_headers
import pytest
from conftest import ROOT, table_rows

DOC = ROOT / "docs" / "pipe-protocol.md"
DEVICE = ROOT / "qemu-device"
HEADER = DEVICE / "path" / "pipe" / "frame.h"
# Frames, and the struct of each.
STRUCTS = {
    "HELLO": "pvr_frame_hello", "CLOSE": "pvr_frame_close", "PING": "pvr_frame_ping", "PONG": "pvr_frame_ping",
    "VERBS_QP": "pvr_frame_verbs_qp", "FABRIC": "pvr_frame_fabric",
    "GID_QUERY": "pvr_frame_gid_query", "GID_REPLY": "pvr_frame_gid_query",
    "REQUEST": "pvr_frame_request", "DATAGRAM": "pvr_frame_datagram", "QP_GONE": "pvr_frame_qp_gone", "ACK": "pvr_frame_ack",
    "ATOMIC_ACK": "pvr_frame_atomic_ack", "READ_DATA": "pvr_frame_read_data",
    "RNDV_DONE": "pvr_frame_rndv_done", "FAULT": "pvr_frame_request",
    "MOVED": "pvr_frame_moved", "TAKE": "pvr_frame_take", "TAKEN": "pvr_frame_take",
    "REFERRAL": "pvr_frame_referral", "ADDRESS": "pvr_frame_address",
}


def values(header, enum, prefix):
    """The values of an enum by their names without the prefix, without NUM."""
    names = c_headers.enum_names(header.text, enum)
    return {name.removeprefix(prefix): header.constants[name] for name in names if name != prefix + "NUM"}


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
def header(tmp_path_factory):
    text = c_headers.read(HEADER)
    flags = [f"-I{DEVICE}", f"-I{ROOT / 'include'}"]
    constants, structs = c_headers.compiled([text], ["path/pipe/frame.h"], flags, tmp_path_factory.mktemp("frame"))
    return SimpleNamespace(text=text, constants=constants, structs=structs)


@pytest.fixture(scope="module")
def doc():
    return DOC.read_text()


def frames_of(heading):
    """The frames that a heading names, with their numbers: 'PING (3), PONG (4)'."""
    return {name: int(number) for name, number in re.findall(r"([A-Z_]+) \((\d+)\)", heading)}


def test_layouts_have_no_padding(header):
    asserted = re.findall(r"^PVR_FRAME_SIZE\((\w+), \d+\);", header.text, re.M)
    assert len(asserted) == 19
    for struct in asserted:
        size, fields = header.structs[f"struct {struct}"]
        assert size == sum(field[1] for field in fields), struct


def test_each_frame_has_a_section_with_its_number(header, doc):
    seen = {}
    for heading in sections(doc):
        seen.update(frames_of(heading))
    assert seen == values(header, "pvr_frame_type", "PVR_FRAME_")


def test_fields_are_those_of_the_header(header, doc):
    found = {name: fields for name, (_, fields) in header.structs.items()}
    for heading, text in sections(doc).items():
        for name in frames_of(heading):
            assert table_of(text) == [field for field in found[f"struct {STRUCTS[name]}"] if field[2] != "frame"], name
    assert table_of(sections(doc)["How a frame begins"]) == found["struct pvr_frame"]
    assert table_of(doc.split("\n## Rendezvous\n")[1]) == found["struct pvr_frame_rndv_seg"]


@pytest.mark.parametrize("heading, name, prefix", [
    ("CLOSE (2)", "pvr_close_reason", "PVR_CLOSE_"),
    ("REQUEST (10), FAULT (13)", "pvr_frame_op", "PVR_FRAME_OP_"),
])
def test_numbers_of_one_table(header, doc, heading, name, prefix):
    assert named(sections(doc)[heading]) == values(header, name, prefix)


def test_syndromes_and_refusals(header, doc):
    first, second = sections(doc)["ACK (17)"].split("With NAK")
    assert named(first) == values(header, "pvr_frame_syndrome", "PVR_FRAME_SYN_")
    assert named(second) == values(header, "pvr_frame_nak", "PVR_FRAME_NAK_")


def test_answers_of_taken(header, doc):
    second = sections(doc)["TAKE (15), TAKEN (20)"].split("| number |")[1]
    assert named(second) == values(header, "pvr_frame_take_answer", "PVR_FRAME_TAKE_")


def test_faults(header, doc):
    section = doc.split("\n## Faults\n")[1].split("\n## ")[0]
    assert {"NONE": 0, **named(section)} == values(header, "pvr_frame_fault", "PVR_FRAME_FAULT_")


def test_flags(header, doc):
    flags = {label.split("_F_")[1]: number for label, number in header.constants.items()
             if label.startswith(("PVR_REQUEST_F_", "PVR_FRAME_F_"))}
    seen = {label: int(number, 16) for number, label in re.findall(r"^\| (0x\d+) \| `([A-Z]+)` \|", doc, re.M)}
    assert len(flags) == 6 and seen == flags


def test_limits(header, doc):
    seen = {name: int(value) for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \|", doc, re.M)}
    assert len(seen) >= 7
    assert seen == {name: header.constants[name] for name in seen}
    assert f"{header.constants['PVR_FRAME_MAGIC']:#x}" in sections(doc)["HELLO (1)"]


def test_the_check_sees_a_wrong_number(header):
    assert header.structs["struct pvr_frame_ack"][1][4] == (12, 4, "epoch")
    assert table_of("| 12 | 4 | `epoch` | x |") != [(12, 8, "epoch")]
    assert c_headers.enum_names("enum e {\n\tA = 4,\n\tB,\n};", "e") == ["A", "B"]
