# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The examples of docs/ci.md, as they are written there, and the wrappers of packaging/ci, by the installed pvrdma-lab of an
ordinary user in a clean root, without network, with a warm cache."""

import dataclasses
import os
import pathlib
import re
import subprocess

import pytest
import yaml
from conftest import ROOT, VERSION, Packages, output_of, root_runner

CI = ROOT / "packaging" / "ci"
CACHE = pathlib.Path(os.environ.get("PVRDMA_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'}/pvrdma")
DOCUMENT = (ROOT / "docs" / "ci.md").read_text()
# From the start of an installed command to the first line of the script.
FIRST_LINE_SECONDS, REUSE_SECONDS = 60, 25


@dataclasses.dataclass
class Example:
    files: dict
    commands: list
    output: list

    def lay_out(self, folder):
        for name, text in self.files.items():
            (folder / name).write_text(text)
            if text.startswith("#!"):
                (folder / name).chmod(0o755)


def examples():
    """{heading: Example}. A file has its name in code before the colon above its block; a console block has commands and output."""
    found = {}
    for section in re.split(r"^## ", DOCUMENT, flags=re.M)[1:]:
        heading = section.splitlines()[0]
        files = re.findall(r"^`([\w./]+)`[^`\n]*:\n\n```\w*\n(.*?)^```", section, re.M | re.S)
        lines = [line for block in re.findall(r"^```console\n(.*?)^```", section, re.M | re.S) for line in block.splitlines()]
        if lines:
            found[heading] = Example(dict(files), [line[2:] for line in lines if line.startswith("$ ")],
                                     [line for line in lines if not line.startswith("$ ")])
    return found


EXAMPLES = examples()
# Stands for docker: runs the command behind the image.
DOCKER = """#!/bin/bash
[[ $1 == run ]] || exit 9
while [[ $1 != IMAGE ]]; do shift; done
shift
exec "$@"
"""
SCRIPT = "#!/bin/sh\necho \"first line at $(cut -d ' ' -f 1 /proc/uptime)\"\n"
TIMES = """
pvrdma-lab run ./test.sh >/dev/null
for reuse in '' --reuse --reuse; do
    start=$(date +%s%N)
    pvrdma-lab run $reuse ./test.sh > >(while read -r line; do echo "$(date +%s%N) $line"; done >lines)
    sleep 0.2
    echo "$(( ($(head -n 1 lines | cut -d ' ' -f 1) - start) / 1000000 )) ms $reuse"
done
pvrdma-lab list
pvrdma-lab stop
"""
# --packages and --fault are in the examples.
OPTIONS = """
pvrdma-lab --version
cat >pingpong <<'END'
#!/bin/bash -e
uname -r
if [ "$NODE" = 1 ]; then
	ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX &
	until ss -ltnH 'sport = :18515' | grep -q .; do sleep 0.1; done
	barrier listening
	wait $!
else
	barrier listening
	ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX node1
fi
END
chmod +x pingpong
pvrdma-lab run --nodes 2 --kernel 6.12 --hosts 2 --keep-logs logs ./pingpong
cat logs/paths.txt
"""
GITHUB = "LAB_IMAGE=IMAGE LAB_SCRIPT=./test.sh LAB_OPTIONS='--nodes 1 --driver none' LAB_LOGS=logs /ci/github/run; ls logs"


def gitlab():
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[".pvrdma-lab"]
    assert job["artifacts"]["paths"] == ["pvrdma-lab-logs"]
    return "\n".join(["LAB_SCRIPT=./test.sh LAB_OPTIONS='--nodes 1 --driver none'", *job["script"], "ls pvrdma-lab-logs"])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{name: (status, output)} of all examples and wrappers; they share one root."""
    packages = Packages("bookworm")
    for guest in sorted(set(re.findall(r"--packages (\S+)", DOCUMENT))) + [""]:
        subprocess.run([ROOT / "scripts" / "vmlab", "--build-only", "--driver", "none", "--packages", guest], check=True)
    subprocess.run([ROOT / "scripts" / "vmlab", "--build-only", "--kernel", "6.12"], check=True)
    output_of(ROOT / "scripts" / "fetch" / "rdma-core")
    work = tmp_path_factory.mktemp("work")
    scripts = {"times": TIMES, "options": OPTIONS, "github": GITHUB, "gitlab": gitlab()}
    scripts |= {heading: "\n".join(example.commands) for heading, example in EXAMPLES.items()}
    for number, (name, script) in enumerate(scripts.items()):
        (work / f"{number}").mkdir()
        Example({"test.sh": SCRIPT}, [], []).lay_out(work / f"{number}")
        if name in EXAMPLES:
            EXAMPLES[name].lay_out(work / f"{number}")
        (work / f"{number}.sh").write_text(script + "\n")
    tools = tmp_path_factory.mktemp("tools")
    tools.chmod(0o755)
    (tools / "docker").write_text(DOCKER)
    (tools / "docker").chmod(0o755)
    done = root_runner(packages, "lab")("lab.sh", str(CACHE), *map(str, range(len(scripts))),
                                        binds=[f"{CACHE}:{CACHE}", f"{CI}:/ci", f"{tools}:/tools", f"{work}:/job"])
    assert done.returncode == 0, done.stdout
    return {name: (int((work / f"{number}.status").read_text()), (work / f"{number}.out").read_text())
            for number, name in enumerate(scripts)}


def test_document_has_these_examples():
    assert list(EXAMPLES) == ["C with CMake", "Open MPI", "UCX", "Python"]
    assert all(example.files and example.commands and example.output for example in EXAMPLES.values())


@pytest.mark.parametrize("heading", EXAMPLES)
def test_example_works_as_written(results, heading):
    status, output = results[heading]
    assert status == 0, output
    lines = output.splitlines()
    for line in EXAMPLES[heading].output:
        assert line in lines, output
        lines = lines[lines.index(line) + 1:] if EXAMPLES[heading].output.count(line) > 1 else lines


def test_first_line_comes_in_time(results):
    """Of a script in new VMs, in new VMs that stay, and in VMs that are used again."""
    status, output = results["times"]
    print(output)
    assert status == 0, output
    new, kept, again = (int(number) / 1000 for number in re.findall(r"^(\d+) ms", output, re.M))
    assert max(new, kept) < FIRST_LINE_SECONDS and again < REUSE_SECONDS, output
    assert re.search(r"^\d+  idle for \d+ s  runs 2  ", output, re.M), output


def test_kernel_and_hosts_are_options_of_an_ordinary_user(results):
    status, output = results["options"]
    assert status == 0, output
    assert output.startswith(f"pvrdma-lab {VERSION}\n"), output
    assert len(re.findall(r"^node[12]\| 6\.12\.", output, re.M)) == 2, output
    assert re.search(r"\(kernel 6\.12, driver pvrdma, .*, (KVM|TCG: .*)\)", output), output
    assert re.search(r"node1 <-> .*path tcp", output), output


@pytest.mark.parametrize("wrapper", ["github", "gitlab"])
def test_wrapper_runs_the_script_and_leaves_logs(results, wrapper):
    status, output = results[wrapper]
    assert status == 0, output
    assert "node1| first line" in output and "node1.console" in output


def test_documented_yaml_is_of_the_wrappers():
    """Inputs of the action, and variables of the template."""
    action = yaml.safe_load((CI / "github" / "action.yml").read_text())
    github, gitlab_job = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", DOCUMENT, re.M | re.S))
    used = github["jobs"]["rdma"]["steps"][1]["with"]
    required = {name for name, about in action["inputs"].items() if about.get("required")}
    assert required <= set(used) <= set(action["inputs"])
    template = yaml.safe_load((CI / "gitlab.yml").read_text())[".pvrdma-lab"]
    assert set(gitlab_job["rdma"]["variables"]) == set(template["variables"])
    environment = action["runs"]["steps"][0]["env"]
    assert all(f"${{{name}:" in (CI / "github" / "run").read_text() for name in environment)


def test_container_is_made_by_the_same_script():
    lines = (CI / "Containerfile").read_text()
    assert "COPY setup pvrdmad_*.deb pvrdma-lab_*.deb /opt/pvrdma/\n" in lines
    assert "/opt/pvrdma/setup /opt/pvrdma && pvrdma-lab --build-only" in lines


@pytest.mark.parametrize("words, message", [
    ([], "setup: expected the folder of the packages\n"),
    (["/etc"], "setup: no pvrdmad in /etc: say make deb, and copy build/deb/bookworm/*.deb there\n"),
])
def test_setup_without_packages_says_where_they_come_from(words, message):
    done = subprocess.run([CI / "setup", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, message)


def test_action_without_image_says_so(tmp_path):
    done = subprocess.run([CI / "github" / "run"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0 and done.stderr.endswith("LAB_IMAGE: expected the image\n")
