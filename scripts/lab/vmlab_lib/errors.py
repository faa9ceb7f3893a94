# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Exceptions that end vmlab. Each carries the one line that is printed."""


class LabError(Exception):
    """The lab cannot be set up: bad input, a missing file, a failed build step."""


class LabFailure(Exception):
    """The lab ran and a node failed, its kernel complained, or it took too long."""


class Interrupted(Exception):
    """A signal asked vmlab to end."""

    def __init__(self, signum):
        super().__init__(f"ended by signal {signum}")
        self.signum = signum
