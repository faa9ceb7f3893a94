# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Scripts of the project that build or fetch, and print the path of what they made."""

import pathlib
import subprocess

SCRIPTS = pathlib.Path(__file__).resolve().parents[2]


class ScriptError(Exception):
    """A script failed; it has said why on stderr."""


def path_from(name, *args):
    done = subprocess.run([SCRIPTS / name, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ScriptError(f"scripts/{name} failed (see above)")
    return pathlib.Path(done.stdout.strip().splitlines()[-1])
