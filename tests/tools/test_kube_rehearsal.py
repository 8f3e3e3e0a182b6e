"""The rehearsal beside a real control plane: it says what it lacks, and the stack ends as a whole."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.outside import shared
from tools import kube_rehearsal

ROOT = Path(__file__).resolve().parents[2]


def test_without_the_rig_it_says_so_and_ends_with_3(tmp_path, capsys):
    assert kube_rehearsal.main(["--rig", str(tmp_path)]) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path) in said
    assert "docs/kubernetes.md" in said


@pytest.mark.kube
@pytest.mark.slow
@pytest.mark.xdist_group("kube")
def test_the_agent_watches_the_failing_deployment_and_all_of_it_ends(tmp_path):
    """A real control plane, one process group: there is a plan to approve, and SIGTERM ends every process."""
    rig = shared("rigs", "kube")
    words = [sys.executable, "-u", "-m", "tools.kube_rehearsal", "--port", "0", "--rig", str(rig)]
    said = tmp_path / "said.txt"
    with (
        said.open("w") as out,
        subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            told = next(line for line in process.stderr if line.startswith("console:"))
            assert requests.get(told.split()[1], timeout=60).status_code == 200
            assert re.search(r"watching: vllm", next(process.stderr))
            moved = next(line for line in process.stderr if re.search("phase=(ASKED|ESCALATED)", line))
            assert "cause=gpu_oom_weights" in moved
            assert "phase=ASKED" in moved, "the newcomer has nothing to approve"
            process.send_signal(signal.SIGTERM)
            assert "everything has ended" in process.stderr.read()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
    (folder,) = re.findall(r"--kubeconfig (\S+)/plane/kubeconfig", said.read_text())
    assert f"STORE=sqlite:{folder}/state" in said.read_text()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _names(path, folder)]
    assert not Path(folder).exists()


def _names(path, folder):
    try:
        return folder.encode() in path.read_bytes()
    except OSError:
        return False
