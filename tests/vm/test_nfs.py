# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NFS over RDMA between the VMs' kernels, as docs/applications.md says: 200 files there and 200 back, or 2,000."""

import dataclasses

import applications
import pytest
import storage
from boots import APPS, each_run, step_tests
from pvrdmactl import at_now, noted, reply
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

FILES, LONG_FILES = 200, 2000
# Files in each of 20 folders, those of the n-th have n * n * 150 bytes: 4.3 MB in 200 files, few of them whole pages.
TREE = """
    tree() {
        local n
        for n in $(seq 20); do
            mkdir -p $1/$n && head -c $((n * n * 150 * files / 20)) /dev/urandom | split -a 3 -b $((n * n * 150)) - $1/$n/ || return
        done
    }
    sums() { (cd $1 && find . -type f | sort | xargs sha256sum); }
    """


def bytes_of(files):
    return sum(n * n * 150 * files // 20 for n in range(1, 21))


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
QP_GONE = Step("nothing-left", storage.FUNCTIONS + """
    until_true 50 no_qp; rdma resource | grep 'cm_id 0 mr 0 ctx 0 srq 0'""")

BEFORE, AFTER = noted("before"), noted("after")
STEPS = [BEFORE, SERVER, CLIENT, TO_SERVER, TO_CLIENT, COMPARE, AFTER, REWRITE, UNMOUNT, END, QP_GONE, COMPLAINTS]


def with_files(files):
    return [dataclasses.replace(step, script=f"files={files}\n{step.script}") for step in STEPS]


WATCH = at_now([BEFORE, AFTER], "--json", "paths")
nfs = APPS.part(with_files(FILES), WATCH)
nfs_long = APPS.part(with_files(LONG_FILES), WATCH, long=True)
test_step, test_run_ended_well = step_tests(nfs=STEPS, nfs_long=STEPS)


@pytest.fixture(scope="module", params=each_run("nfs", "nfs_long"))
def run(request):
    run = request.getfixturevalue(request.param)
    run.files = FILES if request.param == "nfs" else LONG_FILES
    return run


def test_all_files_are_the_same(run):
    for outcome in run.check(COMPARE):
        assert f"{run.files} files are the same" in outcome.text, outcome.tail()


def test_it_is_mounted_as_documented(run):
    applications.check_output("NFS client", run.check(CLIENT)[1].text)


def test_data_went_through_the_device(run):
    """The daemon's counters between the VMs cover both trees."""
    moved = []
    for step in (BEFORE, AFTER):
        run.check(step)
        between = [path["bytes"] for path in reply(run, step)["paths"] if path["from"] != path["to"]]
        moved.append(sum(between))
    assert moved[1] - moved[0] > 2 * bytes_of(run.files), moved
