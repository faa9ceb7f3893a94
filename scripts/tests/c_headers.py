# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Constants and layouts of C headers, as a compiler has them."""

import os
import re
import subprocess

CC = os.environ.get("CC", "cc").split()


def run(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **kwargs).stdout


def read(path):
    """The text of a header, without comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)


def constant_names(text):
    """#define NAME with a value, and members of enums; no macros with parameters."""
    names = re.findall(r"^#define[ \t]+(PVR(?:DMA)?_\w+)[ \t]+\S", text, re.M)
    for enum in re.findall(r"^enum (\w+) {", text, re.M):
        names += enum_names(text, enum)
    return names


def enum_names(text, name):
    body = re.search(rf"^enum {name} {{(.*?)^}};", text, re.S | re.M)[1]
    return [item.split("=")[0].strip() for item in body.split(",") if item.strip()]


def body_end(text, begin):
    """Where the brace that is open at begin closes."""
    depth = 1
    for position in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if not depth:
            return position
    raise ValueError("a brace is not closed")


def field_names(body, prefix=""):
    """The fields of a struct's body in order; of a struct or union without a name of its own: its fields."""
    names, position = [], 0
    member = re.compile(r"\s*(?:(?:struct|union)\s*{|([^;{]+);)")
    while match := member.match(body, position):
        position = match.end()
        if match[1]:
            names += [prefix + name for name in re.findall(r"(\w+)(?:\[\w+\])*\s*(?:,|$)", match[1])]
            continue
        end = body_end(body, position)
        name = re.match(r"}\s*(\w+);", body[end:])
        names += field_names(body[position:end], f"{prefix}{name[1]}.")
        position = end + name.end()
    assert not body[position:].strip(), body[position:]
    return names


def struct_fields(text):
    """{struct or union: its fields}"""
    found = {}
    for match in re.finditer(r"^((?:struct|union) pvr\w+) {", text, re.M):
        found[match[1]] = field_names(text[match.end():body_end(text, match.end())])
    return found


def compiled(texts, names, flags, folder):
    """{constant: value}, {struct: (size, [(offset, size, field), ...])} of headers. NAMES: as #include has them."""
    structs = {name: fields for text in texts for name, fields in struct_fields(text).items()}
    lines = [f'printf("C {name} %u\\n", (unsigned int)({name}));' for text in texts for name in constant_names(text)]
    for struct, fields in structs.items():
        lines.append(f'printf("S {struct}|%zu\\n", sizeof({struct}));')
        lines += [f'printf("F {struct}|%zu|%zu|{field}\\n", offsetof({struct}, {field}), '
                  f"sizeof((({struct} *)0)->{field}));" for field in fields]
    includes = "".join(f'#include "{name}"\n' for name in names)
    source, program = folder / "abi.c", folder / "abi"
    source.write_text(f"#include <stdio.h>\n{includes}int main(void)\n{{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    run([*CC, "-std=gnu11", *flags, "-o", str(program), str(source)])
    constants, layouts = {}, {}
    for line in run([str(program)]).splitlines():
        kind, rest = line.split(" ", 1)
        if kind == "C":
            name, value = rest.split()
            constants[name] = int(value)
            continue
        struct, *cells = rest.split("|")
        if kind == "S":
            layouts[struct] = int(cells[0]), []
        else:
            layouts[struct][1].append((int(cells[0]), int(cells[1]), cells[2]))
    return constants, layouts
