# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The commands of docs/applications.md: tests run them, and check the output against the document.

Below a heading, a block of kind "console" has commands ("node1$ ..." an ordinary user's, "node1# ..." root's, continued
after a backslash) and, in the order of their coming, lines that they print; "..." there is anything.
"""

import dataclasses
import re
import shlex

from traffic import meeting
from vmlab_run import ROOT

DOCUMENT = ROOT / "docs" / "applications.md"
_PROMPT = re.compile(r"node(\d)([$#]) (.*)")


@dataclasses.dataclass(frozen=True)
class Command:
    node: int
    root: bool
    text: str

    def shell(self):
        """Bash that runs it in place of itself, with scripts/guest/steps.sh."""
        return f"{'as_root' if self.root else 'as_user'} {shlex.quote(self.text)}"


@dataclasses.dataclass(frozen=True)
class Example:
    commands: tuple
    output: tuple


def _parse(block):
    commands, output = [], []
    for line in block.replace("\\\n", " ").splitlines():
        prompt = _PROMPT.fullmatch(line)
        if prompt:
            commands.append(Command(int(prompt[1]), prompt[2] == "#", re.sub(r" +", " ", prompt[3])))
        else:
            output.append(line)
    return Example(tuple(commands), tuple(output))


def examples():
    """{heading: Example} of all headings that have one."""
    found = {}
    for section in re.split(r"^#+ ", DOCUMENT.read_text(), flags=re.M)[1:]:
        heading = section.partition("\n")[0]
        blocks = re.findall(r"^```console\n(.*?)^```$", section, flags=re.M | re.S)
        assert len(blocks) <= 1, f"{DOCUMENT.name}: two examples below '{heading}'"
        if blocks:
            found[heading] = _parse(blocks[0])
    return found


def example(heading):
    return examples()[heading]


def name_of(heading):
    """Of the step that runs the example."""
    return re.sub(r"[^a-z0-9_]+", "-", heading.lower())


def meet(heading, port, seconds=60, how="meet", times=1):
    """A step: the example's first command is a server's, which listens at `port`, the second one its client's.

    how: "serve" for a server that never ends by itself. times: that many clients, one after another.
    """
    server, client = example(heading).commands
    client = dataclasses.replace(client, text=" && ".join([client.text] * times))
    return meeting(name_of(heading), port, server.shell(), client.shell(), seconds, how, f"{server.node} {client.node}")


def script(heading, node=None):
    """Bash for the example's commands, all or one node's, one after another until one fails."""
    return " &&\n".join(f"({command.shell()})" for command in example(heading).commands if node in (None, command.node))


def check_output(heading, text):
    """What the document shows is in the text, line by line in that order."""
    position = 0
    for line in example(heading).output:
        words = [r"\s+".join(map(re.escape, part.split())) for part in line.split("...")]
        found = re.compile(".*".join(words)).search(text, position)
        assert found, f"'{line}', which {DOCUMENT.name} shows below '{heading}', is not in:\n{text}"
        position = found.end()
