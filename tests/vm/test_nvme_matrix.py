# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""fio over NVMe over fabrics: each block from 512 bytes to 1 MiB with each queue depth from 1 to 64."""

import pytest
import storage
from boots import APPS, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.long

JOBS = storage.whole()


def of_block(block):
    return [job for job in JOBS if job.block == block]


def name(block):
    return f"blocks-of-{block}"


STEPS = [Step("connect", storage.FUNCTIONS + """
             if [ $NODE = 1 ]; then target && raise up || raise dead; exit; fi
             await up dead; raised up && host"""),
         *(Step(name(block), f"[ $NODE != 2 ] || {storage.fio(of_block(block))}", 120) for block in storage.BLOCKS),
         Step("end", storage.FUNCTIONS + """
             if [ $NODE = 1 ]; then await over; target_end; exit; fi
             host_end && until_true 50 no_qp; status=$?
             raise over; exit $status"""),
         COMPLAINTS]

matrix = APPS.part(STEPS, long=True)
test_step, test_run_ended_well = step_tests(matrix=STEPS)


@pytest.mark.parametrize("block", storage.BLOCKS)
def test_block(matrix, block):
    results = storage.fio_results(matrix.check(name(block))[1].text)
    for job in of_block(block):
        storage.check_job(job, results)
