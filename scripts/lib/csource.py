# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""C sources as text, for the checks: comments, definitions and uses of names. Relies on the format that the style step
enforces: definitions begin in column 0."""

import re

# A comment, a string or a character constant.
_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
_HEAD = re.compile(r"^(?!typedef\b|return\b)[A-Za-z_][\w \t*\n]*?[\s*](?P<name>\w+)\(", re.MULTILINE)
# Declarations and definitions of variables, and lists of declared functions: "pvr_fn pvr_a, pvr_b;".
_GLOBAL = re.compile(r"^(?!typedef\b|return\b|(?:struct|union|enum) \w+ \{)(?P<head>[A-Za-z_][\w \t*]*?[\s*])"
                     r"(?P<names>pvr_\w+(?:,\s*pvr_\w+)*)(?:\[[^\]\n]*\])*[ \t]*(?P<end>=|;)", re.MULTILINE)
_QUEUE = re.compile(r"\b(?:S?LIST|S?TAILQ)_(?:HEAD|ENTRY)\([^)\n]*\)")
_USE = re.compile(r"(?P<before>\b(?:struct|union|enum)[ \t\n]+|->[ \t\n]*|\.[ \t\n]*)?\b(?P<name>pvr_\w+)")
_TAG = re.compile(r"^[ \t]*(?:typedef[ \t]+)?(?:struct|union|enum)[ \t]+(\w+)[ \t\n]*(?:__\w+[ \t\n]*)?\{", re.MULTILINE)
_GUARD = re.compile(r"^#ifndef[ \t]+(\w+)\n#define[ \t]+\1\b", re.MULTILINE)


def _blank(match):
    """White space in place of a comment, an empty string in place of a string; lines keep their numbers."""
    text = match[0]
    if text[0] in "\"'":
        return text[0] * 2
    return " " + "\n" * text.count("\n")


def without_comments(text):
    """Without comments and the content of strings, except the names of included files."""
    includes = iter(_INCLUDE.finditer(text))
    kept = {match.start(1) - 1 for match in includes}
    return _TOKEN.sub(lambda match: match[0] if match.start() in kept else _blank(match), text)


def comments(text):
    """Yield (line number, text) of each line of each comment."""
    for match in _TOKEN.finditer(text):
        if match[0][0] == "/":
            first = text.count("\n", 0, match.start()) + 1
            for number, line in enumerate(match[0].split("\n"), first):
                yield number, line


def includes(code):
    return _INCLUDE.findall(code)


def tags(code):
    """The tags of structs, unions and enums that are defined here."""
    return set(_TAG.findall(code))


def guard(code):
    """The include guard, or None."""
    found = _GUARD.search(code)
    return found[1] if found else None


def _after_parentheses(code, position):
    """Return: the position behind the parameter list that opens just before `position`."""
    depth = 1
    while depth and position < len(code):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        position += 1
    return position


class Names:
    """The names of a file. functions: all that it defines for other files. Of the others only those with pvr_ in front:
    defined: functions, globals and the inline functions of a header. static: static definitions in a .c file. used:
    names in expressions; prototypes and definitions are no uses."""

    def __init__(self, code, is_header):
        self.functions, self.defined, self.static = set(), set(), set()
        code = _QUEUE.sub("", _INCLUDE.sub("", code))
        mentions = []   # spans of names that are declared or defined
        for match in _HEAD.finditer(code):
            words = re.findall(r"\w+", match[0][:match.start("name") - match.start()])
            rest = code[_after_parentheses(code, match.end()):]
            body = re.match(r"(?:[ \t\n]|\b__\w+(?:\(.*?\))?)*([{;])", rest)
            if not body:
                continue
            mentions.append(match.span("name"))
            if body[1] == "{":
                self._define(match["name"], words, is_header, function=True)
        for match in _GLOBAL.finditer(code):
            words = re.findall(r"\w+", match["head"])
            if words[-1] in ("struct", "union", "enum"):
                continue
            for name in re.finditer(r"\w+", match["names"]):
                if match["end"] == "=" or not (is_header or "extern" in words):
                    self._define(name[0], words, is_header, function=False)
                start = match.start("names")
                mentions.append((start + name.start(), start + name.end()))
        spans = set(mentions)
        self.used = {match["name"] for match in _USE.finditer(code)
                     if not match["before"] and match.span("name") not in spans}

    def _define(self, name, words, is_header, function):
        if "static" in words and not is_header:
            self.static.add(name)
            return
        if name.startswith("pvr_"):
            self.defined.add(name)
        if function and "static" not in words:
            self.functions.add(name)
