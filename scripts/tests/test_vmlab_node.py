# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What vmlab sends to a node reaches its VM, also while that moves to another host."""

import types

import pytest
from vmlab_lib import node as node_module
from vmlab_lib.node import Node


class Machine:
    """Holds the lines that it was sent."""

    def __init__(self, vm, handlers):
        self.vm, self.sent = vm, []

    def start(self, program, logs, append):
        pass

    def take_over(self, old):
        pass

    def send(self, text):
        self.sent.append(text)


@pytest.fixture
def node(monkeypatch):
    monkeypatch.setattr(node_module, "Machine", Machine)
    return Node(types.SimpleNamespace(number=1), "qemu", None, None)


def test_line_is_sent_at_once(node):
    node.send("1 ok")
    assert node.machine.sent == ["1 ok"]


def test_lines_wait_for_the_end_of_a_move(node):
    source, target = node.machine, node.start_incoming(node.vm)
    node.send("1 ok")
    node.send("2 ok")
    assert source.sent == target.sent == []
    node.move_to(target)
    node.send("3 ok")
    assert (source.sent, target.sent) == ([], ["1 ok", "2 ok", "3 ok"])


def test_lines_go_to_the_source_of_a_move_that_failed(node):
    source, target = node.machine, node.start_incoming(node.vm)
    node.send("1 ok")
    node.stay()
    node.send("2 ok")
    assert (source.sent, target.sent) == (["1 ok", "2 ok"], [])
