# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The packages of each release of Debian, and roots to install them in."""

import pathlib
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "scripts" / "build"
SUITES = ["bookworm", "trixie"]
VERSION = (ROOT / "VERSION").read_text().strip()
NEXT = "99.0.0"


def output_of(*command):
    """Return: the last line of its output."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


class Packages:
    """The packages of a release: `folder`, and the path of each by its name."""

    def __init__(self, suite, *options):
        self.suite = suite
        self.folder = pathlib.Path(output_of(BUILD / "deb", *options, suite))
        self.files = {path.name.split("_")[0]: path for path in self.folder.glob("*.deb")}

    def field(self, package, name):
        return output_of("dpkg-deb", "--field", self.files[package], name)

    def paths(self, package):
        """Files and links of the package, without folders."""
        listing = subprocess.run(["dpkg-deb", "--contents", self.files[package]], capture_output=True, text=True, check=True)
        return {line.split(None, 5)[5].split(" -> ")[0].removeprefix("./")
                for line in listing.stdout.splitlines() if not line.startswith("d")}


@pytest.fixture(scope="session", params=SUITES)
def packages(request):
    return Packages(request.param)


def root_runner(packages, variant):
    """Return: a function that runs a script of this folder in a clean root with the packages in /debs."""
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", packages.suite, variant)

    def run(script, *arguments, binds=()):
        command = [BUILD / "in-root", "--bind", f"{packages.folder}:/debs", "--bind", f"{pathlib.Path(__file__).parent}:/tests"]
        for bind in binds:
            command += ["--bind", bind]
        return subprocess.run([*command, tarball, "env", f"VERSION={VERSION}", f"NEXT={NEXT}", "sh", f"/tests/{script}", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return run


@pytest.fixture(scope="session")
def in_root(packages):
    """Return: a function that runs a script of this folder in a clean root with the packages in /debs."""
    return root_runner(packages, "install")


@pytest.fixture
def folder():
    """Sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)
