# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Storage of one VM's kernel, used by the other's, with the commands of docs/applications.md."""

import dataclasses
import json
import shlex

import applications

MIB = 1 << 20


def script(heading):
    """Bash: root's commands of that example, in a shell of their own that ends with the first failure."""
    return "bash -exc " + shlex.quote("\n".join(command.text for command in applications.example(heading).commands))


# A step's functions.
FUNCTIONS = f"""
    target() {{ {script("NVMe target")}; }}
    target_end() {{ {script("NVMe target's end")}; }}
    host() {{ {script("NVMe host")}; }}
    host_end() {{ {script("NVMe disconnect")}; }}
    patient_host() {{ {script("The target goes away")}; }}
    state() {{ grep -qx "$1" /sys/class/nvme/nvme0/state; }}
    no_qp() {{ ! rdma resource show qp link $RDMA_DEV/1 | grep -v 'type GSI'; }}
    sectors_done() {{ # of the path: the device that programs use has no counters
        local stat; read -ra stat </sys/class/nvme/nvme0/nvme0c0n1/stat && [ $((stat[2] + stat[6])) -gt "$1" ]
    }}
    """


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of fio, as documented but for the order, the block and the number in flight."""

    rw: str
    block: int
    depth: int
    seed: int

    @property
    def name(self):
        return f"{self.rw}-{self.block}-{self.depth}"

    @property
    def size(self):
        """Enough to fill the queue, as some MiB of small blocks take too long."""
        return self.block * max(3 * self.depth // 2, min(256, 8 * MIB // self.block))

    def options(self):
        return (f"--name={self.name} --stonewall --rw={self.rw} --bs={self.block} --iodepth={self.depth}"
                f" --size={self.size} --randseed={self.seed}")


def documented_fio():
    """Its options, but for those that differ from job to job."""
    words = shlex.split(applications.example("fio").commands[0].text)
    assert words.pop(0) == "fio"
    return [word for word in words if not word.startswith(("--name", "--rw", "--bs", "--iodepth", "--size"))]


def fio(jobs):
    """The command that runs the jobs one after the other and prints the result of each."""
    return " ".join(["fio --output-format=json", *documented_fio(), *(job.options() for job in jobs)])


def fio_results(text):
    """{name: fio's report of that job}"""
    return {job["jobname"]: job for job in json.loads(text[text.index("{"):])["jobs"]}


def check_job(job, results):
    """It had no error and moved each byte once, or there and back."""
    result = results[job.name]
    assert result["error"] == 0, result
    assert result["read"]["io_bytes"] == job.size, result["read"]
    assert result["write"]["io_bytes"] == (job.size if "write" in job.rw else 0), result["write"]


BLOCKS = [512 << shift for shift in range(12)]
DEPTHS = [1 << shift for shift in range(7)]
# The job before has written the data, in another order.
ORDERS = [("write", "randread"), ("randwrite", "read")]


def jobs(block):
    """With each depth; both orders of each block and of each depth, by turns."""
    row = BLOCKS.index(block)
    return [Job(rw, block, depth, row * len(DEPTHS) + column + 1)
            for column, depth in enumerate(DEPTHS) for rw in ORDERS[(row + column) % len(ORDERS)]]
