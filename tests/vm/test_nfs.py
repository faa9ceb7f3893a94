# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NFS over RDMA between the VMs' kernels, as docs/applications.md says: 2,000 files there and 2,000 back."""

import re

import applications
import apps
import pytest
import storage
from steps import Step, ids, run_steps

pytestmark = pytest.mark.slow

FILES = 2000
# 100 files a folder, the n-th one's have n * n * 150 bytes: 43 MB, few of them whole pages.
TREE = """
    tree() {
        local n
        for n in $(seq 20); do
            mkdir -p $1/$n && head -c $((n * n * 15000)) /dev/urandom | split -a 3 -b $((n * n * 150)) - $1/$n/ || return
        done
    }
    sums() { (cd $1 && find . -type f | sort | xargs sha256sum); }
    """
SERVER = Step("server", TREE + f"[ $NODE != 1 ] || {{ {storage.script('NFS server')} && tree /srv/tree/from-server; }}")
CLIENT = Step("client", f"[ $NODE != 2 ] || {storage.script('NFS client')}")
TO_SERVER = Step("copy-to-server", TREE + """
    [ $NODE = 2 ] || exit 0
    tree /tmp/from-client && cp -r /tmp/from-client /mnt/tree && sync -f /mnt/tree && sums /tmp/from-client >$SHARE/from-client""",
                 180)
TO_CLIENT = Step("copy-to-client", TREE + """
    if [ $NODE = 1 ]; then sums /srv/tree/from-server >$SHARE/from-server; exit; fi
    cp -r /mnt/tree/from-server /tmp && sums /tmp/from-server >/tmp/sums || exit
    find /tmp/from-server -type f | wc -l""", 180)
COMPARE = Step("compare", TREE + """
    if [ $NODE = 1 ]; then sums /srv/tree/from-client >/tmp/sums; other=from-client; else other=from-server; fi
    diff /tmp/sums $SHARE/$other && echo "$(wc -l </tmp/sums) files are the same" """, 60)
REWRITE = Step("both-see-each-others-changes", """
    if [ $NODE = 2 ]; then
        head -c 5000001 /dev/urandom >/mnt/tree/large && sha256sum </mnt/tree/large >$SHARE/large && raise written
        await changed; cat /mnt/tree/small | grep -x 'by the server'; exit
    fi
    await written; sha256sum </srv/tree/large | diff - $SHARE/large && echo 'by the server' >/srv/tree/small; status=$?
    raise changed; exit $status""")
UNMOUNT = Step("unmount", f"[ $NODE != 2 ] || {storage.script('NFS unmounted')}")
END = Step("server-end", "[ $NODE != 1 ] || " + storage.script("NFS server's end"))
LEFT = Step("nothing-left", storage.FUNCTIONS + """
    until_true 50 no_qp; rdma resource | grep 'cm_id 0 mr 0 ctx 0 srq 0'""")

STEPS = [SERVER, CLIENT, TO_SERVER, TO_CLIENT, COMPARE, REWRITE, UNMOUNT, END, LEFT, Step("complaints", "! complaints")]


@pytest.fixture(scope="module")
def nfs(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("nfs"), STEPS, packages=apps.PACKAGES)


@pytest.mark.parametrize("step", ids(STEPS))
def test_nfs(nfs, step):
    nfs.check(step)


def test_all_files_are_the_same(nfs):
    for outcome in nfs.check(COMPARE.name):
        assert f"{FILES} files are the same" in outcome.text, outcome.tail()


def test_it_is_mounted_as_documented(nfs):
    applications.check_output("NFS client", nfs.check(CLIENT.name)[1].text)


def test_data_went_through_the_device(nfs):
    """Both trees are 86 MB, what the daemon counts between the VMs is in MiB."""
    nfs.check(COMPARE.name)
    moved = re.search(r"([\d.]+) MiB$", nfs.result.log("paths.txt").strip())
    assert moved and float(moved[1]) > 82, nfs.result.log("paths.txt")


def test_run_ended_well(nfs):
    nfs.check_end()
