# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What is said of steps of VM runs that failed."""


from vmlab_lib.steps import Outcome


def test_blame_is_one_line_with_the_last_words():
    text = "begin\nfirst\nsecond\n\n  third\nfourth\n"
    assert Outcome(2, 3, 1500, text).blame() == "node2: status 3, 1.5 s: first | second | third | fourth"


def test_blame_has_repeated_words_once():
    text = "what went wrong\n" + "DISCONNECT EVENT...\n" * 60 + "the client ended with status 123\n"
    assert Outcome(1, 123, 0, text).blame().endswith(
        ": what went wrong | DISCONNECT EVENT... | the client ended with status 123")


def test_blame_leaves_out_what_the_kernel_said():
    text = "what went wrong\ndmesg: [    3.8] port 1: active\n"
    assert Outcome(1, 1, 0, text).blame() == "node1: status 1, 0.0 s: what went wrong"


def test_blame_of_a_step_that_did_not_run():
    assert Outcome(1, None, 0, "").blame() == "node1: did not run, 0.0 s: "


def test_tail_says_how_much_it_leaves_out():
    lines = Outcome(1, 0, 0, "\n".join(f"line {i}" for i in range(50))).tail().splitlines()
    assert lines[0] == "node1: status 0, 0.0 s" and lines[1] == "  ... 10 lines before" and lines[-1] == "  line 49"
