# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The key with which nodes log in to each other: made for one run, gone with it."""

import shutil
import subprocess

from .errors import LabError

# Guests whose image has this package have an SSH server.
SERVER = "openssh-server"
KEY = "key"


def check_host():
    if not shutil.which("ssh-keygen"):
        raise LabError(f"--packages {SERVER} needs ssh-keygen on the host: say apt-get install openssh-client")


def make_key(folder):
    """Put a new key into `folder`. It is every node's host key and every account's, as all trust each other."""
    folder.mkdir(mode=0o700)
    made = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vmlab", "-f", folder / KEY],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if made.returncode != 0:
        raise LabError(f"ssh-keygen made no key: {made.stderr.strip()}")
